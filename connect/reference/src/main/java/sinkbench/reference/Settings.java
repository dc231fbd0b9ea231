package sinkbench.reference;

import java.util.*;
import java.util.function.Predicate;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.config.ConfigDef.*;
import org.postgresql.Driver;

/** The settings of a connector, which its tasks get with their number. */
final class Settings extends AbstractConfig {
    /** Throws a ConfigException if a setting is wrong. */
    Settings(ConfigDef definition, Map<String, String> props) { super(definition, props, false); }

    boolean exactlyOnce() { return getString("delivery").equals("exactly-once-effect"); }
    boolean upsert() { return getString("write").equals("upsert"); }
    String connector() { return originalsStrings().get("name"); }
    String task() { return originalsStrings().get("task.number"); }

    static ConfigDef elasticsearch() {
        ConfigDef def = common();
        add(def, "elasticsearch.hosts", Type.LIST, ConfigDef.NO_DEFAULT_VALUE,
            must("be host:port, http://host:port or https://host:port, or several with commas between them",
                hosts -> hosts.toString().matches("\\[((https?://)?([\\w.-]+|\\[[^]]+]):\\d{1,5}(, |]$))+")),
            "Where to write: host:port,... or http(s)://host:port,... The former is with TLS if elasticsearch.ca is set.");
        add(def, "elasticsearch.username", Type.STRING, "", null, "The user; empty: none.");
        add(def, "elasticsearch.password", Type.PASSWORD, "", null, "The user's password.");
        add(def, "elasticsearch.ca", Type.STRING, "", null, "File of the authority's certificate (PEM); empty: those of Java.");
        add(def, "index", Type.STRING, "${topic}", new NonEmptyString(), "The index; ${topic} is the record's topic.");
        return def;
    }

    static ConfigDef postgres() {
        ConfigDef def = common();
        add(def, "connection.url", Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            must("be jdbc:postgresql://host:port/database, or another URL of pgjdbc",
                url -> url.toString().startsWith("jdbc:postgresql:") && Driver.parseURL(url.toString(), null) != null),
            "Where to write: any URL of pgjdbc. What it sets goes before what is set here.");
        add(def, "connection.username", Type.STRING, "", null, "The user.");
        add(def, "connection.password", Type.PASSWORD, "", null, "The user's password.");
        add(def, "table", Type.STRING, "${topic}", new NonEmptyString(), "The table, or schema.table; ${topic} is the record's topic.");
        add(def, "column", Type.STRING, "payload", new NonEmptyString(), "Column of the value: jsonb, json, text, varchar or bytea.");
        add(def, "key.column", Type.STRING, "key", new NonEmptyString(), "Column of the key, for write=upsert: unique; text or varchar.");
        add(def, "insert.mode", Type.STRING, "copy", ValidString.in("copy", "insert"), "By COPY, or by INSERT, which rules apply to.");
        return def;
    }

    private static ConfigDef common() {
        ConfigDef def = new ConfigDef();
        add(def, "delivery", Type.STRING, "at-least-once", ValidString.in("at-least-once", "exactly-once-effect"),
            "exactly-once-effect: what comes twice is stored once, by _id, or by __connect_topic, __connect_partition and __connect_offset.");
        add(def, "write", Type.STRING, "insert", ValidString.in("insert", "upsert"),
            "upsert: a record replaces the one of its key, and deletes it if it has no value. In Elasticsearch its offset is the version: a topic "
                + "that is made anew, or gets more partitions, needs another index. In PostgreSQL the last transaction wins, even a stale task's.");
        add(def, "batch.records", Type.INT, 5000, Range.between(1, 1_000_000), "Records in a request, at most.");
        add(def, "batch.bytes", Type.INT, 5_000_000, Range.between(1, 100_000_000), "Bytes in a request, at most; a larger record goes alone.");
        add(def, "request.timeout.ms", Type.INT, 30_000, Range.between(1000, 240_000), "How long to wait for the sink's answer.");
        add(def, "retry.pause.ms", Type.LONG, 100, Range.between(1, 3_600_000), "First pause before records are sent again. It doubles.");
        add(def, "retry.pause.max.ms", Type.LONG, 10_000, Range.between(1, 3_600_000), "Longest pause. An offset commit may end it.");
        add(def, "retry.for.ms", Type.LONG, -1, Range.atLeast(-1), "After how long of this the task fails; -1: never.");
        return def;
    }

    private static void add(ConfigDef def, String name, Type type, Object standard, Validator validator, String doc) {
        Importance importance = standard == ConfigDef.NO_DEFAULT_VALUE ? Importance.HIGH : Importance.MEDIUM;
        def.define(name, type, standard, validator, importance, doc, "Sink", def.names().size(), Width.MEDIUM, name);
    }

    /** The message has no value: that may have a password. */
    private static Validator must(String words, Predicate<Object> rule) {
        return LambdaValidator.with((name, value) -> {
            if (value == null || !rule.test(value))
                throw new ConfigException(name + " must " + words);
        }, () -> words);
    }
}
