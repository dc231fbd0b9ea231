package sinkbench.reference;

import static org.junit.jupiter.api.Assertions.*;
import static sinkbench.reference.Given.record;

import java.lang.management.ManagementFactory;
import java.util.*;
import java.util.function.Function;
import javax.management.*;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.sink.SinkRecord;
import org.junit.jupiter.api.*;

class ReferenceTaskTest {
    /** Answers requests as the test says, and those after that by storing everything. */
    private static final class ScriptedStore implements Store {
        final List<List<String>> requests = new ArrayList<>();
        final List<String> stored = new ArrayList<>();
        final Deque<Function<List<Item>, Map<Item, ConnectException>>> answers = new ArrayDeque<>();
        String poison; // a value whose batch is refused whenever it comes, as by PostgreSQL
        boolean closed;

        @Override public String destination(String topic) { return topic; }
        @Override public void close() { closed = true; }

        @Override
        public Map<Item, ConnectException> write(List<Item> batch) {
            requests.add(values(batch));
            Map<Item, ConnectException> left = answers.isEmpty() ? Map.of() : answers.pop().apply(batch);
            if (values(batch).contains(poison))
                throw new DataException("no JSON");
            batch.stream().filter(item -> !left.containsKey(item)).forEach(item -> stored.add(value(item)));
            return left;
        }

        static String value(Item item) { return item.value == null ? "-" + item.key : new String(item.value); }
        static List<String> values(List<Item> batch) { return batch.stream().map(ScriptedStore::value).toList(); }
    }

    private final ScriptedStore store = new ScriptedStore();
    private final Given given = new Given();
    private ReferenceTask task;

    private void start(String... settings) {
        task = new ReferenceTask(Settings.elasticsearch(), unused -> store) { };
        task.initialize(given.context());
        task.start(Given.props(settings));
    }

    @AfterEach void stop() {
        task.stop();
        assertTrue(store.closed);
    }

    private void unavailable() { store.answers.add(batch -> { throw new RetriableException("busy"); }); }

    /** The answer to a batch of which these values are left, for now or for good. */
    private void left(boolean retriable, String... values) {
        store.answers.add(batch -> {
            Map<Item, ConnectException> left = new HashMap<>();
            for (Item item : batch)
                if (List.of(values).contains(ScriptedStore.value(item)))
                    left.put(item, retriable ? new RetriableException("busy") : new DataException("no JSON"));
            return left;
        });
    }

    @Test void putReturnsWhenAllIsAcknowledged() {
        start();
        task.put(List.of(record(0, "a"), record(1, "b")));
        assertEquals(List.of(List.of("a", "b")), store.requests);
    }

    @Test void batchesAreCutByRecordsBytesAndDestination() {
        start("batch.records", "2", "batch.bytes", "10");
        task.put(List.of(record(0, "a"), record(1, "b"), record(2, "c"), record(3, "123456789"), record(4, "ddd"), record(5, "more than 10"),
            record("other", 0, null, "e"), record("other", 1, null, "f")));
        assertEquals("[[a, b], [c, 123456789], [ddd], [more than 10], [e, f]]", store.requests.toString());
    }

    @Test void recordsOfAnUnavailableSinkArePutAgainAfterGrowingPauses() {
        start("retry.pause.ms", "100", "retry.pause.max.ms", "400");
        List<SinkRecord> records = List.of(record(0, "a"));
        for (long longest : List.of(100, 200, 400, 400)) {
            unavailable();
            assertThrows(RetriableException.class, () -> task.put(records));
            long pause = given.pauses.get(given.pauses.size() - 1);
            assertTrue(pause >= longest / 2 && pause <= longest, "pause " + pause);
        }
        task.put(records);
        assertEquals(List.of("a"), store.stored);
        unavailable();
        assertThrows(RetriableException.class, () -> task.put(List.of(record(1, "b"))));
        assertTrue(given.pauses.get(4) <= 100, "the pauses start anew");
    }

    @Test void whatWasAcknowledgedIsNotPutTwice() {
        start("batch.records", "2");
        List<SinkRecord> records = List.of(record(0, "a"), record(1, "b"), record(2, "c"), record(3, "d"));
        left(true);
        left(true, "d");
        assertThrows(RetriableException.class, () -> task.put(records));
        task.put(records.subList(3, 4));
        assertEquals(List.of("a", "b", "c", "d"), store.stored);
    }

    @Test void aTaskFailsAfterItsPatience() {
        start("retry.for.ms", "0");
        unavailable();
        ConnectException e = assertThrows(ConnectException.class, () -> task.put(List.of(record(0, "a"))));
        assertFalse(e instanceof RetriableException);
        assertTrue(e.getMessage().contains("busy"), e.getMessage());
    }

    @Test void aRefusedRecordIsFoundByHalvingAndItsNeighboursAreStoredOnce() {
        start();
        store.poison = "c";
        task.put(List.of(record(0, "a"), record(1, "b"), record(2, "c"), record(3, "d"), record(4, "e")));
        assertEquals(List.of("a", "b", "d", "e"), store.stored);
        assertEquals(List.of(2L), given.reported);
    }

    @Test void aRefusedRecordIsReportedOnceThoughTheRestMustWait() {
        start("batch.records", "2");
        List<SinkRecord> records = List.of(record(0, "a"), record(1, "b"), record(2, "c"));
        left(false, "a");
        unavailable();
        assertThrows(RetriableException.class, () -> task.put(records));
        assertEquals(List.of(), given.reported);
        left(false, "a");
        task.put(records);
        assertEquals(List.of("b", "c"), store.stored);
        assertEquals(List.of(0L), given.reported);
    }

    @Test void withoutAReporterTheTaskFailsAndNamesTheRecord() {
        start();
        given.reporter = false;
        left(false, "b");
        ConnectException e = assertThrows(ConnectException.class, () -> task.put(List.of(record(6, "a"), record(7, "b"), record(8, "c"))));
        assertEquals("The record of topic t, partition 0, offset 7 is refused: no JSON", e.getMessage());
        assertEquals(List.of("a", "c"), store.stored);
    }

    @Test void recordsThatCannotBeStoredAreRefusedAndAWrongConverterEndsTheTask() {
        start();
        task.put(List.of(record(0, "a"), record(1, null)));
        assertEquals(List.of("a"), store.stored);
        assertEquals(List.of(1L), given.reported);
        assertThrows(ConnectException.class, () -> task.put(List.of(record("t", 2, null, Map.of("a", 1)))));
    }

    @Test void theLastVersionOfAKeyIsWritten() {
        start("write", "upsert");
        task.put(List.of(record("t", 0, "k", "1"), record("t", 1, "l", "2"), record("t", 2, "k", "3"), record("t", 3, "m", null), record("t", 4, null, "x"),
            record("t", 5, new byte[] {(byte) 0xff}, "y")));
        assertEquals(List.of("3", "2", "-m"), store.stored);
        assertEquals(List.of(4L, 5L), given.reported);
    }

    @Test void theVersionBeforeARefusedOneIsWritten() {
        start("write", "upsert");
        store.poison = "3";
        task.put(List.of(record("t", 0, "k", "1"), record("t", 1, "k", "2"), record("t", 2, "k", "3")));
        assertEquals(List.of("2"), store.stored);
        assertEquals(List.of(2L), given.reported);
    }

    @Test void noVersionBeforeAStoredOneIsWrittenAfterIt() {
        start("write", "upsert");
        List<SinkRecord> records = List.of(record("t", 0, "k", "1"), record("t", 1, "k", "2"), record("t", 2, "l", "3"));
        left(true, "3");
        assertThrows(RetriableException.class, () -> task.put(records));
        task.put(records);
        assertEquals(List.of("2", "3"), store.stored);
    }

    @Test void metricsAreInJmxUntilTheTaskStops() throws Exception {
        start();
        unavailable();
        assertThrows(RetriableException.class, () -> task.put(List.of(record(0, "ab"))));
        store.poison = "c";
        task.put(List.of(record(0, "ab"), record(1, "c")));
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("sinkbench.reference:type=sink-task-metrics,connector=c,task=0");
        Map<String, Double> expected = Map.of("records-sent-total", 1.0, "requests-total", 4.0, "bytes-total", 8.0, "retries-total", 1.0,
            "records-refused-total", 1.0, "requests-in-flight", 0.0);
        for (Map.Entry<String, Double> each : expected.entrySet())
            assertEquals(each.getValue(), server.getAttribute(name, each.getKey()), each.getKey());
        assertTrue((Double) server.getAttribute(name, "sink-time-ms-total") > 0);
        task.stop();
        assertFalse(server.isRegistered(name));
    }
}
