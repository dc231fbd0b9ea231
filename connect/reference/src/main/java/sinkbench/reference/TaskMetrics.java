package sinkbench.reference;

import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.metrics.*;
import org.apache.kafka.common.utils.Time;

/** A task's metrics, in JMX until they are closed. Totals of requests and bytes count what failed, too. */
final class TaskMetrics implements AutoCloseable {
    private final Map<String, Double> values = new ConcurrentHashMap<>();
    private final Metrics metrics = new Metrics(
        new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("sinkbench.reference"));

    TaskMetrics(String connector, String task) {
        Map<String, String> tags = new TreeMap<>(Map.of("connector", connector, "task", task));
        for (String name : List.of("records-sent-total", "requests-total", "bytes-total", "retries-total", "records-refused-total",
            "requests-in-flight", "sink-time-ms-total")) {
            add(name, 0);
            metrics.addMetric(metrics.metricName(name, "sink-task-metrics", "", tags), (Gauge<Double>) (config, now) -> values.get(name));
        }
    }

    void add(String name, double amount) { values.merge(name, amount, Double::sum); }
    @Override public void close() { metrics.close(); }
}
