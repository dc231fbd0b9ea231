package sinkbench.elasticsearch;

import java.util.Map;
import org.elasticsearch.ingest.DropProcessor;
import org.elasticsearch.ingest.Processor;
import org.elasticsearch.plugins.IngestPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * Offers the ingest processor "drop", whose class the server has: whole distributions do so by their module ingest-common,
 * which Maven has not.
 */
public final class DropPlugin extends Plugin implements IngestPlugin {
    @Override
    public Map<String, Processor.Factory> getProcessors(Processor.Parameters parameters) {
        return Map.of(DropProcessor.TYPE, new DropProcessor.Factory());
    }
}
