package sinkbench.reference;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import com.fasterxml.jackson.databind.*;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.http.*;
import org.apache.http.entity.ContentType;
import org.apache.http.message.BasicHeader;
import org.apache.http.nio.entity.NByteArrayEntity;
import org.apache.http.util.EntityUtils;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.connect.errors.*;
import org.elasticsearch.client.*;

/**
 * Writes batches as bulk requests with Elasticsearch's low-level client, which goes to another host if one does not answer.
 * A document gets no id, or its record's position if it is to be stored once. An upsert has the key as its id and the offset
 * as its version: a task that does not know yet that it lost its partitions replaces nothing newer.
 */
final class ElasticsearchStore implements Store {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final byte[] INDEX = "{\"index\":{}}\n".getBytes(UTF_8);

    private final Settings settings;
    private final RestClient client;

    ElasticsearchStore(Settings settings) {
        this.settings = settings;
        String user = settings.getString("elasticsearch.username"), ca = settings.getString("elasticsearch.ca");
        DefaultSslEngineFactory tls = new DefaultSslEngineFactory();
        if (!ca.isEmpty())
            tls.configure(new ConfigDef().withClientSslSupport().parse(Map.of("ssl.truststore.type", "PEM", "ssl.truststore.location", ca)));
        byte[] credentials = (user + ":" + settings.getPassword("elasticsearch.password").value()).getBytes(UTF_8);
        BasicHeader authorization = new BasicHeader("Authorization", "Basic " + Base64.getEncoder().encodeToString(credentials));
        client = RestClient.builder(settings.getList("elasticsearch.hosts").stream()
                .map(host -> HttpHost.create(host.contains("://") ? host : (ca.isEmpty() ? "http://" : "https://") + host)).toArray(HttpHost[]::new))
            .setDefaultHeaders(user.isEmpty() ? new Header[0] : new Header[] {authorization})
            .setRequestConfigCallback(config -> config.setConnectTimeout(10_000).setSocketTimeout(settings.getInt("request.timeout.ms")))
            .setHttpClientConfigCallback(http -> http.setSSLContext(tls.sslContext())
                .setUserAgent("sinkbench-reference (" + settings.connector().replaceAll("[^ -~]", "?") + ")"))
            .build();
    }

    @Override public String destination(String topic) { return settings.getString("index").replace("${topic}", topic); }
    @Override public void close() throws IOException { client.close(); }

    @Override
    public Map<Item, ConnectException> write(List<Item> batch) {
        Request request = new Request("POST", "/" + URLEncoder.encode(batch.get(0).destination, UTF_8) + "/_bulk");
        request.addParameter("filter_path", "error,errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason");
        // Elasticsearch must give up waiting for a shard before this side gives up waiting for Elasticsearch.
        request.addParameter("timeout", settings.getInt("request.timeout.ms") / 2 + "ms");
        // With another status the client tries the next host, and throws an IOException after the last one.
        request.addParameter("ignore", "400,401,403,404,405,406,410,413,415,429");
        request.setEntity(new NByteArrayEntity(body(batch), ContentType.APPLICATION_JSON));
        try {
            Response response = client.performRequest(request);
            int status = response.getStatusLine().getStatusCode();
            String answer = EntityUtils.toString(response.getEntity(), UTF_8);
            // No tree of thousands of items of which nothing is to be known.
            if (status == 200 && answer.contains("\"errors\":false"))
                return Map.of();
            JsonNode tree = answer.startsWith("{") ? JSON.readTree(answer) : JSON.missingNode();
            if (status == 200 && tree.path("items").size() == batch.size())
                return rejected(batch, tree.path("items"));
            throw error(status, tree, status == 413 ? "larger than http.max_content_length " + answer : answer, status == 413 || type(tree).equals("action_request_validation_exception"));
        } catch (IOException e) {
            throw new RetriableException(e.toString(), e);
        }
    }

    private byte[] body(List<Item> batch) {
        boolean exactlyOnce = settings.exactlyOnce();
        List<byte[]> actions = batch.stream().map(item -> action(item, exactlyOnce)).toList();
        int size = actions.stream().mapToInt(action -> action.length).sum();
        ByteBuffer body = ByteBuffer.allocate(size + batch.stream().mapToInt(item -> item.value == null ? 0 : item.value.length + 1).sum());
        for (int i = 0; i < batch.size(); i++) {
            int start = body.put(actions.get(i)).position();
            if (batch.get(i).value == null)
                continue;
            body.put(batch.get(i).value).put((byte) '\n');
            // A line feed within would end the document. JSON allows a carriage return wherever it allows a line feed.
            for (int at = start; at < body.position() - 1; at++)
                if (body.get(at) == '\n')
                    body.put(at, (byte) '\r');
        }
        return body.array();
    }

    private static byte[] action(Item item, boolean exactlyOnce) {
        if (item.key == null && !exactlyOnce)
            return INDEX;
        long offset = item.record.originalKafkaOffset();
        String position = item.record.originalTopic() + "-" + item.record.originalKafkaPartition() + "-" + offset;
        if (item.key == null)
            return ("{\"create\":{\"_id\":\"" + position + "\"}}\n").getBytes(UTF_8);
        String id = new String(JsonStringEncoder.getInstance().quoteAsString(item.key)), action = item.value == null ? "delete" : "index";
        return ("{\"" + action + "\":{\"_id\":\"" + id + "\",\"version\":" + (offset + 1) + ",\"version_type\":\"external_gte\"}}\n").getBytes(UTF_8);
    }

    private static Map<Item, ConnectException> rejected(List<Item> batch, JsonNode items) {
        Map<Item, ConnectException> rejected = new HashMap<>();
        for (int i = 0; i < batch.size(); i++) {
            JsonNode item = items.get(i).elements().next();
            int status = item.path("status").asInt();
            // 409: the record, or a newer one of its key, is stored. 404 without an error: what is to be deleted is not there.
            if (status < 300 || status == 409 || (status == 404 && !item.has("error")))
                continue;
            ConnectException e = error(status, item, "", status == 400 && !type(item).matches("index_closed_exception|invalid_index_name_exception"));
            if (!(e instanceof RetriableException || e instanceof DataException))
                throw e;
            rejected.put(batch.get(i), e);
        }
        return rejected;
    }

    /** Returns a RetriableException, a DataException if it is about a document, or else one that ends the task. */
    private static ConnectException error(int status, JsonNode answer, String text, boolean ofDocument) {
        JsonNode error = answer.path("error");
        String words = status + " " + type(answer) + ": " + error.path("reason").asText(text) + " " + error.path("caused_by").path("reason").asText();
        if (status == 200 || status == 429 || status >= 500 || type(answer).equals("cluster_block_exception"))
            return new RetriableException(words);
        return ofDocument ? new DataException(words) : new ConnectException("Elasticsearch refuses all records: " + words
            + "; see " + (status == 401 || status == 403 ? "elasticsearch.username and elasticsearch.password" : "index and elasticsearch.hosts"));
    }

    private static String type(JsonNode answer) { return answer.path("error").path("type").asText(); }
}
