package sinkbench.reference;

import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/** A sink, which has stored a batch when {@link #write} returns. For one thread. */
interface Store extends AutoCloseable {
    /** Returns the index or table of a topic's records. */
    String destination(String topic);

    /**
     * Writes a batch of one destination. Returns those that are not stored, with a DataException if the sink refuses them,
     * with a RetriableException if only for now. Throws a RetriableException if the sink is unavailable: any may be stored;
     * a DataException if none is stored since at least one is refused; a ConnectException if the sink refuses whatever comes.
     */
    Map<Item, ConnectException> write(List<Item> batch);
}
