package sinkbench.reference;

import java.lang.reflect.Proxy;
import java.util.*;
import org.apache.kafka.connect.sink.*;

/** What the tests are given: records, settings, and a context that notes pauses and reports. */
final class Given {
    final List<Long> pauses = new ArrayList<>();
    final List<Long> reported = new ArrayList<>();
    boolean reporter = true;

    /** Settings of both connectors, with these besides. */
    static Map<String, String> props(String... more) {
        Map<String, String> props = new HashMap<>(Map.of("name", "c", "task.number", "0", "topics", "t", "elasticsearch.hosts", "127.0.0.1:1",
            "connection.url", "jdbc:postgresql://127.0.0.1:1/x"));
        for (int i = 0; i < more.length; i += 2)
            props.put(more[i], more[i + 1]);
        return props;
    }

    static SinkRecord record(String topic, long offset, Object key, Object value) { return new SinkRecord(topic, 0, null, key, null, value, offset); }
    static SinkRecord record(long offset, String value) { return record("t", offset, null, value); }

    static List<Item> items(Store store, boolean keyed, SinkRecord... records) {
        List<Item> items = new ArrayList<>();
        for (SinkRecord record : records)
            items.add(new Item(record, store.destination(record.topic()), keyed));
        return items;
    }

    SinkTaskContext context() {
        ErrantRecordReporter reports = (record, error) -> {
            reported.add(record.kafkaOffset());
            return null;
        };
        return (SinkTaskContext) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {SinkTaskContext.class}, (proxy, method, args) -> {
            if (method.getName().equals("timeout"))
                pauses.add((Long) args[0]);
            return method.getName().equals("errantRecordReporter") && reporter ? reports : null;
        });
    }
}
