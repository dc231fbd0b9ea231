package sinkbench.reference;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.apache.kafka.connect.sink.SinkConnector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigTest {
    private static String errors(ReferenceConnector connector, Map<String, String> props, String name) {
        return connector.validate(props).configValues().stream().filter(value -> value.name().equals(name)).findFirst().orElseThrow()
            .errorMessages().toString();
    }

    @ParameterizedTest @CsvSource(nullValues = "-", value = {
        "delivery, exactly-once", "write, replace", "batch.records, 0", "batch.bytes, much", "request.timeout.ms, 10", "retry.pause.ms, 0", "retry.for.ms, -2",
        "elasticsearch.hosts, localhost", "elasticsearch.hosts, ftp://localhost:9200", "elasticsearch.hosts, 'a:9200,b'", "elasticsearch.hosts, -", "elasticsearch.hosts, ''",
        "index, ''", "connection.url, jdbc:mysql://a/b", "connection.url, jdbc:postgresql://a:port/b?password=secret", "connection.url, -", "table, ''",
        "column, ''", "insert.mode, upsert"})
    void aWrongSettingIsRefusedByName(String name, String value) {
        Map<String, String> props = Given.props(name, value);
        ReferenceConnector connector = Settings.postgres().names().contains(name) ? new PostgresCopyConnector() : new ElasticsearchBulkConnector();
        String errors = errors(connector, props, name);
        assertTrue(errors.contains(name), errors);
        assertFalse(errors.contains("secret"), errors);
    }

    @Test void rightSettingsHaveNoErrors() {
        Map<String, String> props = Given.props("elasticsearch.hosts", "a:9200,http://b-1.c:9200, https://[::1]:9200", "delivery", "exactly-once-effect",
            "connection.url", "jdbc:postgresql://a:5432,b:5432/x?targetServerType=primary");
        for (ReferenceConnector connector : List.of(new ElasticsearchBulkConnector(), new PostgresCopyConnector()))
            connector.validate(props).configValues().forEach(value -> assertEquals(List.of(), value.errorMessages(), value.name()));
    }

    @Test void anUpsertHasNoExactlyOnceEffect() {
        Map<String, String> props = Given.props("delivery", "exactly-once-effect", "write", "upsert");
        assertTrue(errors(new PostgresCopyConnector(), props, "delivery").contains("write=insert"));
    }

    @Test void everyTaskGetsItsNumber() {
        ReferenceConnector connector = new ElasticsearchBulkConnector();
        connector.start(Given.props());
        assertEquals(List.of("0", "1"), connector.taskConfigs(2).stream().map(config -> config.get("task.number")).toList());
    }

    @Test void connectFindsTheConnectors() {
        List<?> found = ServiceLoader.load(SinkConnector.class).stream().map(ServiceLoader.Provider::type).toList();
        assertTrue(found.containsAll(List.of(ElasticsearchBulkConnector.class, PostgresCopyConnector.class)), found.toString());
    }
}
