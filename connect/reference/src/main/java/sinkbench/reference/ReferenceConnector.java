package sinkbench.reference;

import java.util.*;
import java.util.stream.IntStream;
import org.apache.kafka.common.config.*;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** What both connectors share: a configuration goes in, and comes out for each task with the task's number. */
public abstract class ReferenceConnector extends SinkConnector {
    static final String VERSION = "1";
    private final ConfigDef config;
    private final Class<? extends Task> taskClass;
    private Map<String, String> props;

    ReferenceConnector(ConfigDef config, Class<? extends Task> taskClass) {
        this.config = config;
        this.taskClass = taskClass;
    }

    @Override public ConfigDef config() { return config; }
    @Override public Class<? extends Task> taskClass() { return taskClass; }
    @Override public String version() { return VERSION; }
    @Override public void start(Map<String, String> props) { this.props = props; }
    @Override public void stop() { }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return IntStream.range(0, maxTasks).mapToObj(number -> {
            Map<String, String> task = new HashMap<>(props);
            task.put("task.number", Integer.toString(number));
            return task;
        }).toList();
    }

    /** Returns each setting with what is wrong with it; Connect starts no connector with a wrong one. */
    @Override
    public Config validate(Map<String, String> props) {
        Config validated = super.validate(props);
        if ("exactly-once-effect".equals(props.get("delivery")) && "upsert".equals(props.get("write")))
            validated.configValues().stream().filter(value -> value.name().equals("delivery")).forEach(value -> value.addErrorMessage(
                "exactly-once-effect is for write=insert: an upsert has the same effect however often it is written"));
        return validated;
    }
}
