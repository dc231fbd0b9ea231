package sinkbench.reference;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.sink.SinkRecord;

/** A record on its way: where to, its value as bytes, or null if it deletes, and its key if it is stored by that. */
final class Item {
    final SinkRecord record;
    final String destination, key;
    final byte[] value;
    /** The version of the key that this one makes superfluous, or null. */
    Item earlier;

    /** Throws a DataException if the record cannot be stored, a ConnectException if none of such a converter can. */
    Item(SinkRecord record, String destination, boolean keyed) {
        this.record = record;
        this.destination = destination;
        value = bytes(record.value());
        try {
            // Replacement characters would make two keys one.
            key = keyed && record.key() != null ? UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(record.key()))).toString() : null;
        } catch (CharacterCodingException e) {
            throw new DataException("its key is not UTF-8");
        }
        if (keyed ? key == null : value == null)
            throw new DataException(keyed ? "it has no key, which write=upsert needs" : "it has no value, which write=insert needs");
    }

    int bytes() { return (key == null ? 0 : key.length()) + (value == null ? 0 : value.length); }

    private static byte[] bytes(Object data) {
        if (data == null || data instanceof byte[])
            return (byte[]) data;
        if (data instanceof String)
            return ((String) data).getBytes(UTF_8);
        throw new ConnectException("Neither bytes nor a string, but " + data.getClass().getName()
            + ": set key.converter and value.converter to org.apache.kafka.connect.converters.ByteArrayConverter");
    }
}
