package sinkbench.reference;

import java.util.*;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.sink.*;

/**
 * Writes the records of a poll in batches, and returns from put when the sink has acknowledged all: Connect commits offsets of
 * stored records only. If the sink is unavailable, put throws a RetriableException: Connect logs it, pauses the consumer's
 * partitions, polls on, and puts the same records again, of which the task leaves out what was stored. A record that the sink
 * refuses goes to Connect's reporter, or fails the task if there is none, after all others of its poll have been stored.
 */
public abstract class ReferenceTask extends SinkTask {
    private final ConfigDef config;
    private final Function<Settings, Store> open;
    private final Map<String, String> destinations = new HashMap<>();
    /** What the sink has of this put, or of one that failed: Connect puts the same objects again, but for lost partitions. */
    private final Set<SinkRecord> stored = Collections.newSetFromMap(new IdentityHashMap<>());
    private Settings settings;
    private Store store;
    private TaskMetrics metrics;
    private int failures;
    private long failingSince;

    ReferenceTask(ConfigDef config, Function<Settings, Store> open) {
        this.config = config;
        this.open = open;
    }

    @Override public String version() { return ReferenceConnector.VERSION; }

    @Override
    public void start(Map<String, String> props) {
        settings = new Settings(config, props);
        store = open.apply(settings);
        metrics = new TaskMetrics(settings.connector(), settings.task());
    }

    @Override
    public void stop() {
        Utils.closeQuietly(store, "store");
        Utils.closeQuietly(metrics, "metrics");
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        Map<SinkRecord, ConnectException> refused = new LinkedHashMap<>();
        try {
            Collection<Item> items = items(records, refused);
            while (!items.isEmpty()) {
                List<Item> earlier = new ArrayList<>();
                for (List<Item> batch : batches(items))
                    write(batch, (item, e) -> {
                        refused.put(item.record, e);
                        // Without this version the sink must have the one before.
                        if (item.earlier != null)
                            earlier.add(item.earlier);
                    });
                items = earlier;
            }
            refused.forEach(this::report);
            stored.clear();
        } catch (RetriableException e) {
            throw pause(e);
        }
    }

    /** Returns what is to be written: of several versions of a key the last one, which holds the others. */
    private Collection<Item> items(Collection<SinkRecord> records, Map<SinkRecord, ConnectException> refused) {
        boolean upsert = settings.upsert();
        List<Item> items = new ArrayList<>(records.size());
        Map<List<String>, Item> latest = new LinkedHashMap<>();
        for (SinkRecord record : records) {
            if (!stored.isEmpty() && stored.contains(record))
                continue;
            try {
                Item item = new Item(record, destinations.computeIfAbsent(record.topic(), store::destination), upsert);
                items.add(item);
                if (upsert)
                    item.earlier = latest.put(List.of(item.destination, item.key), item);
            } catch (DataException e) {
                refused.put(record, e);
            }
        }
        return upsert ? latest.values() : items;
    }

    /** Returns batches within the limits, of one destination each: a poll brings the records of a partition together. */
    private List<List<Item>> batches(Collection<Item> items) {
        int mostRecords = settings.getInt("batch.records"), mostBytes = settings.getInt("batch.bytes"), bytes = 0;
        List<List<Item>> batches = new ArrayList<>();
        List<Item> batch = List.of();
        for (Item item : items) {
            bytes += item.bytes();
            if (batch.isEmpty() || batch.size() == mostRecords || bytes > mostBytes || !batch.get(0).destination.equals(item.destination)) {
                batches.add(batch = new ArrayList<>());
                bytes = item.bytes();
            }
            batch.add(item);
        }
        return batches;
    }

    /** Writes a batch; halves of it, and halves of these, until the records are found that the sink refuses. */
    private void write(List<Item> batch, BiConsumer<Item, ConnectException> refuse) {
        Map<Item, ConnectException> left;
        try {
            left = request(batch);
        } catch (DataException e) {
            if (batch.size() > 1) {
                write(batch.subList(0, batch.size() / 2), refuse);
                write(batch.subList(batch.size() / 2, batch.size()), refuse);
                return;
            }
            left = Map.of(batch.get(0), e);
        }
        for (Item item : batch)
            for (Item version = left.containsKey(item) ? null : item; version != null; version = version.earlier)
                stored.add(version.record);
        metrics.add("records-sent-total", batch.size() - left.size());
        left.forEach((item, e) -> {
            if (e instanceof RetriableException)
                throw e;
            refuse.accept(item, e);
        });
        failures = 0;
    }

    private Map<Item, ConnectException> request(List<Item> batch) {
        metrics.add("requests-total", 1);
        metrics.add("bytes-total", batch.stream().mapToInt(Item::bytes).sum());
        metrics.add("requests-in-flight", 1);
        long start = System.nanoTime();
        try {
            return store.write(batch);
        } finally {
            metrics.add("sink-time-ms-total", (System.nanoTime() - start) / 1e6);
            metrics.add("requests-in-flight", -1);
        }
    }

    /** Connect waits for its reporter before it commits the offset. The error has no cause: readers show the innermost one. */
    private void report(SinkRecord record, ConnectException e) {
        metrics.add("records-refused-total", 1);
        ConnectException error = new ConnectException("The record of topic " + record.originalTopic() + ", partition "
            + record.originalKafkaPartition() + ", offset " + record.originalKafkaOffset() + " is refused: " + e.getMessage());
        if (context.errantRecordReporter() == null)
            throw error;
        context.errantRecordReporter().report(record, error);
    }

    /** Returns what Connect puts the records again for, after a pause; or what ends the task. */
    private ConnectException pause(RetriableException e) {
        long now = System.currentTimeMillis(), patience = settings.getLong("retry.for.ms");
        if (failures++ == 0)
            failingSince = now;
        if (patience >= 0 && now - failingSince >= patience)
            return new ConnectException("The sink is unavailable, for longer than retry.for.ms=" + patience + ": " + e.getMessage(), e);
        metrics.add("retries-total", 1);
        long pause = Math.min(settings.getLong("retry.pause.ms") << Math.min(failures - 1, 30), settings.getLong("retry.pause.max.ms"));
        // Else tasks that failed together would come back together.
        context.timeout(pause - ThreadLocalRandom.current().nextLong(pause / 2 + 1));
        return e;
    }
}
