package sinkbench.reference;

/** Writes into a column of a PostgreSQL table: bytes or strings go in, each task sends one COPY or INSERT at a time. */
public class PostgresCopyConnector extends ReferenceConnector {
    public PostgresCopyConnector() { super(Settings.postgres(), PostgresCopyTask.class); }

    /** A task whose sink is PostgreSQL. */
    public static class PostgresCopyTask extends ReferenceTask {
        public PostgresCopyTask() { super(Settings.postgres(), PostgresStore::new); }
    }
}
