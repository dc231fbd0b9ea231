package sinkbench.reference;

/** Writes into Elasticsearch: JSON documents as bytes or strings go in, each task sends one bulk request at a time. */
public class ElasticsearchBulkConnector extends ReferenceConnector {
    public ElasticsearchBulkConnector() { super(Settings.elasticsearch(), ElasticsearchBulkTask.class); }

    /** A task whose sink is Elasticsearch. */
    public static class ElasticsearchBulkTask extends ReferenceTask {
        public ElasticsearchBulkTask() { super(Settings.elasticsearch(), ElasticsearchStore::new); }
    }
}
