package sinkbench.reference;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.*;
import java.nio.ByteBuffer;
import java.sql.*;
import java.util.*;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.errors.*;
import org.postgresql.Driver;
import org.postgresql.jdbc.PgConnection;

/**
 * Writes each batch in a transaction with pgjdbc. Values go untouched: into COPY in binary format, or, since COPY can neither
 * leave out rows nor replace them, into arrays of bytes, of which one INSERT makes rows. A table that COPY fills for INSERT
 * takes PostgreSQL no less. After an error the next batch connects anew, to whichever host is the primary then.
 */
final class PostgresStore implements Store {
    private static final byte[] COPY_HEADER = {'P', 'G', 'C', 'O', 'P', 'Y', '\n', (byte) 0xff, '\r', '\n', 0, 0, 0, 0, 0, 0, 0, 0, 0};
    private static final Function<Item, Object> VALUE = item -> item.value;

    /** A column to be filled, what type an array for it is of, and what of a record it gets. */
    private record Column(String name, String type, Function<Item, Object> of) { }

    private final Settings settings;
    private final String column;
    private final String key;
    private final List<Column> columns = new ArrayList<>();
    private String onConflict = "";
    private PgConnection connection;

    PostgresStore(Settings settings) {
        this.settings = settings;
        column = quote(settings.getString("column"));
        key = quote(settings.getString("key.column"));
        if (settings.upsert()) {
            columns.add(new Column(key, "text", item -> item.key));
            onConflict = " ON CONFLICT (" + key + ") DO UPDATE SET " + column + " = EXCLUDED." + column;
        } else if (settings.exactlyOnce()) {
            columns.add(new Column("__connect_topic", "text", item -> item.record.originalTopic()));
            columns.add(new Column("__connect_partition", "int4", item -> item.record.originalKafkaPartition()));
            columns.add(new Column("__connect_offset", "int8", item -> item.record.originalKafkaOffset()));
            // By the columns: a row that another constraint refuses must not be left out without a word.
            onConflict = " ON CONFLICT (__connect_topic, __connect_partition, __connect_offset) DO NOTHING";
        }
        columns.add(new Column(column, "bytea", VALUE));
    }

    /** Splits the setting at a dot, but not the topic. */
    @Override
    public String destination(String topic) {
        return Arrays.stream(settings.getString("table").split("\\.", 2))
            .map(part -> quote(part.replace("${topic}", topic))).collect(Collectors.joining("."));
    }

    @Override
    public Map<Item, ConnectException> write(List<Item> batch) {
        try {
            if (connection == null)
                connect();
            store(batch.get(0).destination, batch);
            connection.commit();
            return Map.of();
        } catch (SQLException | IOException e) {
            String state = e instanceof SQLException ? String.valueOf(((SQLException) e).getSQLState()) : "08006";
            ConnectException error = error(state, e.getMessage() + " (SQLSTATE " + state + ")" + (e.getCause() == null ? "" : ": " + e.getCause()));
            if (error instanceof DataException && connection != null)
                Utils.closeQuietly(connection::rollback, "transaction");
            else
                close();
            throw error;
        }
    }

    @Override
    public void close() {
        Utils.closeQuietly(connection, "connection");
        connection = null;
    }

    private void connect() throws SQLException {
        String name = "sinkbench-reference " + settings.connector(), task = "-" + settings.task();
        Properties props = new Properties();
        // PostgreSQL keeps 63 bytes of a name. PgBouncer may run a transaction in a session that lacks what another one prepared.
        props.putAll(Map.of("user", settings.getString("connection.username"), "password", settings.getPassword("connection.password").value(),
            "ApplicationName", name.substring(0, Math.min(name.length(), 63 - task.length())) + task, "tcpKeepAlive", "true", "prepareThreshold", "0",
            "socketTimeout", Integer.toString(settings.getInt("request.timeout.ms") / 1000)));
        // Not by DriverManager, to which a plugin's drivers are unknown. What the URL sets goes before the properties.
        connection = (PgConnection) new Driver().connect(settings.getString("connection.url"), props);
        connection.setAutoCommit(false);
    }

    private void store(String table, List<Item> batch) throws SQLException, IOException {
        String type = type(table);
        if (columns.size() == 1 && settings.getString("insert.mode").equals("copy")) {
            String copy = "COPY " + table + " (" + column + ") FROM STDIN (FORMAT binary)";
            connection.getCopyAPI().copyIn(copy, new ByteArrayInputStream(rows(batch, type.equals("jsonb"))), 1 << 16);
            return;
        }
        // In one order everywhere, so that transactions that upsert do not wait for each other in a circle.
        Comparator<Item> byKey = Comparator.comparing(item -> item.key == null ? "" : item.key);
        List<Item> rows = batch.stream().filter(item -> item.value != null).sorted(byKey).toList();
        Object[] deletes = batch.stream().filter(item -> item.value == null).map(item -> item.key).toArray();
        if (!rows.isEmpty()) {
            String value = type.equals("bytea") ? column : "convert_from(" + column + ", 'UTF8')::" + type;
            List<Array> arrays = new ArrayList<>();
            for (Column each : columns)
                arrays.add(connection.createArrayOf(each.type, rows.stream().map(each.of).toArray(each.of == VALUE ? byte[][]::new : Object[]::new)));
            execute("INSERT INTO " + table + " (" + join(Column::name) + ") SELECT " + join(each -> each.of == VALUE ? value : each.name)
                + " FROM (SELECT " + join(each -> "unnest(?::" + each.type + "[]) AS " + each.name) + ") s" + onConflict, arrays);
        }
        if (deletes.length > 0)
            execute("DELETE FROM " + table + " WHERE " + key + " = ANY (?::text[])", List.of(connection.createArrayOf("text", deletes)));
    }

    /** Returns what COPY reads. Jsonb is text after the number of a version. */
    static byte[] rows(List<Item> batch, boolean jsonb) {
        int more = jsonb ? 1 : 0, size = batch.stream().mapToInt(item -> Short.BYTES + Integer.BYTES + more + item.value.length).sum();
        ByteBuffer buffer = ByteBuffer.allocate(COPY_HEADER.length + size + Short.BYTES).put(COPY_HEADER);
        for (Item item : batch) {
            buffer.putShort((short) 1).putInt(more + item.value.length);
            if (jsonb)
                buffer.put((byte) 1);
            buffer.put(item.value);
        }
        return buffer.putShort((short) -1).array();
    }

    private String join(Function<Column, String> text) { return columns.stream().map(text).collect(Collectors.joining(", ")); }

    private void execute(String sql, List<Array> arrays) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < arrays.size(); i++)
                statement.setArray(i + 1, arrays.get(i));
            statement.execute();
        }
    }

    /** Returns the type of the value's column, without its length: a cast would cut off. The column may change at any time. */
    private String type(String table) throws SQLException {
        String sql = "SELECT type FROM (SELECT format_type(atttypid, -1) AS type FROM pg_attribute WHERE attrelid = ?::regclass AND attname = ?"
            + " AND NOT attisdropped) a WHERE type IN ('jsonb', 'json', 'text', 'character varying', 'bytea')";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, table);
            statement.setString(2, settings.getString("column"));
            ResultSet row = statement.executeQuery();
            if (row.next())
                return row.getString(1);
            throw new SQLException(table + " has no column " + column + " of type jsonb, json, text, varchar or bytea", "42703");
        }
    }

    /** Returns a RetriableException, a DataException if the error is about a row, or else one that ends the task. */
    static ConnectException error(String state, String words) {
        // What a trigger raises, a value, a constraint, a view's check, a limit such as that of JSON's depth.
        if (state.matches("P0001|(22(?!023)|23|44|54)..."))
            return new DataException(words);
        // The connection, a deadlock, no resources, a shutdown, an I/O error; read-only, a timeout in a transaction, a lock.
        if (state.matches("(08|40|53|57|58)...|25006|25P03|25P04|55P03") && !state.matches("08004|57P04"))
            return new RetriableException(words);
        return new ConnectException("PostgreSQL refuses all records: " + words + "; see " + (state.matches("28...|42501")
            ? "connection.username and its rights" : state.startsWith("42") ? "table, column and key.column" : "connection.url"));
    }

    private static String quote(String identifier) { return '"' + identifier.replace("\"", "\"\"") + '"'; }
}
