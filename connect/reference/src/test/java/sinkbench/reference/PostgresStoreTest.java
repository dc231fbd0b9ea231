package sinkbench.reference;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.*;
import static sinkbench.reference.Given.record;

import java.sql.*;
import java.util.*;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.sink.SinkRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;

/** Those with a table want a PostgreSQL: mvn test -Dpostgres.url=jdbc:postgresql://... of one who may create tables. */
class PostgresStoreTest {
    private static final String URL = System.getProperty("postgres.url", "jdbc:postgresql://127.0.0.1:1/x");

    private static PostgresStore store(String... settings) {
        Map<String, String> props = Given.props(settings);
        props.put("connection.url", URL);
        props.putIfAbsent("connection.username", "postgres");
        return new PostgresStore(new Settings(Settings.postgres(), props));
    }

    @ParameterizedTest @CsvSource({
        "RetriableException, 08001 08006 53100 53300 57P01 57P03 57014 40001 40P01 25006 55P03 58030, ''",
        "DataException, 22P02 22P05 22021 23505 23514 54001 P0001 44000, ''",
        "ConnectException, 42P01 42703 42P10, table", "ConnectException, 42501 28P01, connection.username", "ConnectException, 3D000 08004 57P04 null, connection.url"})
    void theStateSaysWhetherToTryAgainOrToRefuseARowOrToFail(String expected, String states, String setting) {
        for (String state : states.split(" ")) {
            ConnectException e = PostgresStore.error(state, "");
            assertEquals(expected, e.getClass().getSimpleName(), state);
            assertTrue(e.getMessage().contains(setting), e.getMessage());
        }
    }

    @Test void copyGetsTheBytes() {
        List<Item> items = Given.items(store(), false, record(0, "{}"), record("t", 1, null, new byte[] {'\\', '\n'}));
        String header = "PGCOPY\n\u00ff\r\n\0" + "\0\0\0\0" + "\0\0\0\0";
        for (boolean jsonb : List.of(true, false)) {
            String length = jsonb ? "\0\0\0\3\1" : "\0\0\0\2";
            assertArrayEquals((header + "\0\1" + length + "{}" + "\0\1" + length + "\\\n" + "\u00ff\u00ff").getBytes(ISO_8859_1), PostgresStore.rows(items, jsonb));
        }
    }

    @ParameterizedTest @CsvSource({"${topic}, a.b, '\"a.b\"'", "s.${topic}, a\", '\"s\".\"a\"\"\"'", "s.x, a, '\"s\".\"x\"'", "${topic}_v2, a, '\"a_v2\"'"})
    void theTableIsQuoted(String table, String topic, String expected) {
        assertEquals(expected, store("table", table).destination(topic));
    }

    @ParameterizedTest @CsvSource({"copy, jsonb", "insert, jsonb", "copy, json", "copy, text", "insert, text", "copy, varchar(100)", "insert, varchar(100)", "copy, bytea", "insert, bytea"})
    @EnabledIfSystemProperty(named = "postgres.url", matches = ".+")
    void rowsAreAdded(String mode, String type) throws SQLException {
        sql("DROP TABLE IF EXISTS t", "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, payload " + type + " NOT NULL)");
        PostgresStore store = store("insert.mode", mode);
        write(store, false, record(0, "{\"a\": \"ä\\\\\"}"), record(1, "[]"));
        String row = type.equals("bytea") ? "convert_from(payload, 'UTF8')" : "payload::text";
        assertEquals(List.of("{\"a\": \"ä\\\\\"}", "[]"), sql("SELECT " + row + " FROM t ORDER BY id"));
        assertEquals(List.of("sinkbench-reference c-0"), sql("SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE 'sinkbench-%'"));
        store.close();
    }

    @Test @EnabledIfSystemProperty(named = "postgres.url", matches = ".+")
    void whatComesTwiceIsStoredOnce() throws SQLException {
        sql("DROP TABLE IF EXISTS t", "CREATE TABLE t (__connect_topic text, __connect_partition int, __connect_offset bigint, payload jsonb,"
            + " PRIMARY KEY (__connect_topic, __connect_partition, __connect_offset))");
        PostgresStore store = store("delivery", "exactly-once-effect");
        write(store, false, record(0, "0"), record(1, "1"));
        write(store, false, record(1, "1"), record(2, "2"));
        assertEquals(List.of("t-0-0-0", "t-0-1-1", "t-0-2-2"), sql("SELECT concat_ws('-', __connect_topic, __connect_partition, __connect_offset, payload) AS r FROM t ORDER BY r"));
        sql("CREATE UNIQUE INDEX ON t (payload)");
        assertThrows(DataException.class, () -> write(store, false, record(3, "2")));
    }

    @Test @EnabledIfSystemProperty(named = "postgres.url", matches = ".+")
    void keysAreReplacedAndDeleted() throws SQLException {
        sql("DROP TABLE IF EXISTS t", "CREATE TABLE t (key text PRIMARY KEY, payload jsonb NOT NULL)");
        PostgresStore store = store("write", "upsert");
        write(store, true, record("t", 0, "a", "1"), record("t", 1, "ö\"\\", "2"), record("t", 2, "c", "3"));
        write(store, true, record("t", 3, "a", null), record("t", 4, "ö\"\\", "4"), record("t", 5, "none", null));
        assertEquals(List.of("c 3", "ö\"\\ 4"), sql("SELECT key || ' ' || payload FROM t ORDER BY key COLLATE \"C\""));
    }

    @Test @EnabledIfSystemProperty(named = "postgres.url", matches = ".+")
    void afterARefusedBatchOrALostConnectionTheNextIsWritten() throws SQLException {
        sql("DROP TABLE IF EXISTS t", "CREATE TABLE t (payload jsonb)");
        for (String mode : List.of("copy", "insert")) {
            PostgresStore store = store("insert.mode", mode);
            for (byte[] wrong : List.of(new byte[] {'{'}, new byte[] {'"', (byte) 0xff, '"'}, "\"\\u0000\"".getBytes(), "[".repeat(100_000).getBytes()))
                assertThrows(DataException.class, () -> store.write(Given.items(store, false, record(0, "1"), record("t", 1, null, wrong))));
            store.write(Given.items(store, false, record(0, "1")));
            sql("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE application_name = 'sinkbench-reference c-0'");
            assertThrows(RetriableException.class, () -> store.write(Given.items(store, false, record(1, "2"))));
            write(store, false, record(1, "2"));
        }
        assertEquals(List.of("1", "1", "2", "2"), sql("SELECT payload::text FROM t ORDER BY 1"));
        ConnectException e = assertThrows(ConnectException.class, () -> write(store("table", "missing"), false, record(0, "1")));
        assertTrue(e.getMessage().contains("42P01"), e.getMessage());
        assertThrows(ConnectException.class, () -> write(store("column", "missing"), false, record(0, "1")));
    }

    private static void write(PostgresStore store, boolean keyed, SinkRecord... records) { store.write(Given.items(store, keyed, records)); }

    /** Returns the first columns of what they return. */
    private static List<String> sql(String... statements) throws SQLException {
        List<String> column = new ArrayList<>();
        try (Connection connection = DriverManager.getConnection(URL, "postgres", "")) {
            for (String statement : statements)
                try (Statement executed = connection.createStatement()) {
                    executed.execute(statement);
                    for (ResultSet row = executed.getResultSet(); row != null && row.next();)
                        column.add(row.getString(1));
                }
        }
        return column;
    }
}
