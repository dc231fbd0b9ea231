package sinkbench.reference;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.*;
import static sinkbench.reference.Given.record;

import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.*;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.sink.SinkRecord;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;

class ElasticsearchStoreTest {
    private final List<String> requests = new ArrayList<>();
    private final List<String> headers = new ArrayList<>();
    /** Status and body of the next answers; after them all is fine. */
    private final Deque<Map.Entry<Integer, String>> answers = new ArrayDeque<>();
    private HttpServer server;
    private ElasticsearchStore store;

    @BeforeEach void serve() throws IOException { serve(HttpServer.create(), 0); }
    private void serve(HttpServer made, int port) throws IOException {
        server = made;
        server.bind(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", this::answer);
        server.start();
    }

    @AfterEach void stop() throws IOException {
        server.stop(0);
        store.close();
    }

    private synchronized void answer(HttpExchange exchange) throws IOException {
        requests.add(exchange.getRequestURI().getPath() + "\n" + new String(exchange.getRequestBody().readAllBytes(), UTF_8));
        headers.add(exchange.getRequestHeaders().getFirst("Authorization") + ", " + exchange.getRequestHeaders().getFirst("User-Agent"));
        Map.Entry<Integer, String> answer = answers.isEmpty() ? Map.entry(200, "{\"errors\":false}") : answers.pop();
        byte[] body = answer.getValue().getBytes(UTF_8);
        exchange.sendResponseHeaders(answer.getKey(), body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private String address() { return "127.0.0.1:" + server.getAddress().getPort(); }
    private void open(String... settings) {
        List<String> all = new ArrayList<>(List.of("elasticsearch.hosts", address()));
        all.addAll(List.of(settings));
        store = new ElasticsearchStore(new Settings(Settings.elasticsearch(), Given.props(all.toArray(String[]::new))));
    }

    private Map<Item, ConnectException> write(boolean keyed, SinkRecord... records) { return store.write(Given.items(store, keyed, records)); }
    private void items(String... items) { answers.add(Map.entry(200, "{\"errors\":true,\"items\":[" + String.join(",", items) + "]}")); }

    private static String item(int status, String type) {
        String error = type.isEmpty() ? "" : ",\"error\":{\"type\":\"" + type + "\",\"reason\":\"said why\",\"caused_by\":{\"reason\":\"and because\"}}";
        return "{\"index\":{\"status\":" + status + error + "}}";
    }

    @Test void aDocumentIsAddedAsItIs() {
        open("name", "näme");
        assertEquals(Map.of(), write(false, record(5, "{\"a\":\n \"ä\\n\"}"), record(6, "{}")));
        assertEquals(List.of("/t/_bulk\n{\"index\":{}}\n{\"a\":\r \"ä\\n\"}\n{\"index\":{}}\n{}\n"), requests);
        assertEquals(List.of("null, sinkbench-reference (n?me)"), headers);
    }

    @Test void aDocumentThatIsStoredOnceIsCreatedByItsPosition() {
        open("delivery", "exactly-once-effect", "elasticsearch.username", "u", "elasticsearch.password", "p");
        items(item(201, ""), item(409, "version_conflict_engine_exception"));
        assertEquals(Map.of(), write(false, record(5, "{}"), record(6, "{}")));
        assertEquals(List.of("/t/_bulk\n{\"create\":{\"_id\":\"t-0-5\"}}\n{}\n{\"create\":{\"_id\":\"t-0-6\"}}\n{}\n"), requests);
        assertEquals(List.of("Basic dTpw, sinkbench-reference (c)"), headers);
    }

    @Test void anUpsertHasTheKeyAndTheOffset() {
        open("write", "upsert");
        items(item(200, ""), item(404, ""), item(409, "version_conflict_engine_exception"));
        assertEquals(Map.of(), write(true, record("t", 5, "a\"\n", "{}"), record("t", 6, "b", null), record("t", 7, "c", "{}")));
        assertEquals(List.of("/t/_bulk\n{\"index\":{\"_id\":\"a\\\"\\n\",\"version\":6,\"version_type\":\"external_gte\"}}\n{}\n"
            + "{\"delete\":{\"_id\":\"b\",\"version\":7,\"version_type\":\"external_gte\"}}\n"
            + "{\"index\":{\"_id\":\"c\",\"version\":8,\"version_type\":\"external_gte\"}}\n{}\n"), requests);
    }

    @ParameterizedTest @CsvSource({"429, es_rejected_execution_exception", "403, cluster_block_exception", "429, cluster_block_exception", "503, unavailable_shards_exception", "500, x"})
    void anItemThatIsRefusedForNowIsLeft(int status, String type) {
        open();
        items(item(201, ""), item(status, type));
        Map<Item, ConnectException> left = write(false, record(0, "{}"), record(1, "{}"));
        assertEquals(List.of(1L), left.keySet().stream().map(item -> item.record.kafkaOffset()).toList());
        assertTrue(left.values().iterator().next() instanceof RetriableException);
    }

    @ParameterizedTest @ValueSource(strings = {"document_parsing_exception", "strict_dynamic_mapping_exception", "illegal_argument_exception"})
    void aDocumentThatIsRefusedIsLeftWithTheWords(String type) {
        open();
        items(item(400, type), item(201, ""));
        Map<Item, ConnectException> left = write(false, record(0, "{"), record(1, "{}"));
        assertEquals(List.of(0L), left.keySet().stream().map(item -> item.record.kafkaOffset()).toList());
        assertTrue(left.values().iterator().next() instanceof DataException);
        assertEquals("400 " + type + ": said why and because", left.values().iterator().next().getMessage());
    }

    @ParameterizedTest @CsvSource({"400, index_closed_exception, index", "404, index_not_found_exception, index", "403, security_exception, elasticsearch.username"})
    void anIndexThatTakesNothingEndsTheTask(int status, String type, String setting) {
        open();
        items(item(status, type));
        ConnectException e = assertThrows(ConnectException.class, () -> write(false, record(0, "{}")));
        assertFalse(e instanceof RetriableException || e instanceof DataException);
        assertTrue(e.getMessage().contains(type) && e.getMessage().contains(setting), e.getMessage());
    }

    @ParameterizedTest @CsvSource({"429, circuit_breaking_exception, org.apache.kafka.connect.errors.RetriableException", "503, x, org.apache.kafka.connect.errors.RetriableException",
        "502, '', org.apache.kafka.connect.errors.RetriableException", "413, '', org.apache.kafka.connect.errors.DataException",
        "400, action_request_validation_exception, org.apache.kafka.connect.errors.DataException", "401, security_exception, org.apache.kafka.connect.errors.ConnectException",
        "400, '', org.apache.kafka.connect.errors.ConnectException"})
    void aRequestIsRefusedForNowOrForItsDocumentsOrForGood(int status, String type, Class<?> expected) {
        open();
        answers.add(Map.entry(status, type.isEmpty() ? "<html>proxy</html>" : "{\"error\":{\"type\":\"" + type + "\",\"reason\":\"said why\"}}"));
        ConnectException e = assertThrows(ConnectException.class, () -> write(false, record(0, "{}")));
        assertEquals(expected, e.getClass());
        assertTrue(e.getMessage().contains(type.isEmpty() ? "proxy" : "said why"), e.getMessage());
        assertEquals(status == 413, e.getMessage().contains("larger than http.max_content_length"));
    }

    @Test void aTaskSendsOnlyWhatIsLeft() {
        open();
        ReferenceTask task = new ReferenceTask(Settings.elasticsearch(), settings -> store) { };
        Given given = new Given();
        task.initialize(given.context());
        task.start(Given.props());
        items(item(201, ""), item(429, "es_rejected_execution_exception"), item(400, "document_parsing_exception"));
        items(item(201, ""), item(400, "document_parsing_exception"));
        List<SinkRecord> records = List.of(record(0, "{}"), record(1, "[]"), record(2, "{"));
        assertThrows(RetriableException.class, () -> task.put(records));
        task.put(records);
        assertEquals("/t/_bulk\n{\"index\":{}}\n[]\n{\"index\":{}}\n{\n", requests.get(1));
        assertEquals(List.of(2L), given.reported);
        task.stop();
    }

    @Test void anAnswerThatIsNoneMeansUnavailable() {
        open();
        for (String answer : List.of("<html>", "{\"errors\":true,\"items\":[]}", "{\"errors\":tr")) {
            answers.add(Map.entry(200, answer));
            assertThrows(RetriableException.class, () -> write(false, record(0, "{}")));
        }
    }

    @Test void aServerThatIsGoneIsUnavailableUntilItIsBack() throws IOException {
        open();
        server.stop(0);
        assertThrows(RetriableException.class, () -> write(false, record(0, "{}")));
        serve(HttpServer.create(), server.getAddress().getPort());
        assertEquals(Map.of(), write(false, record(0, "{}")));
    }

    @Test void anotherHostIsTakenIfOneIsGone() throws IOException {
        try (ServerSocket unused = new ServerSocket(0)) {
            open("elasticsearch.hosts", "http://127.0.0.1:" + unused.getLocalPort() + "," + address());
        }
        for (int i = 0; i < 3; i++)
            assertEquals(Map.of(), write(false, record(i, "{}")));
        assertEquals(3, requests.size());
    }

    @Test void aServerIsTrustedIfItsAuthorityIs(@TempDir Path folder) throws Exception {
        for (String command : List.of("-genkeypair -keyalg RSA -dname CN=x -ext SAN=ip:127.0.0.1", "-exportcert -rfc -file " + folder + "/ca.pem"))
            assertEquals(0, new ProcessBuilder((System.getProperty("java.home") + "/bin/keytool " + command + " -storepass secret -keystore " + folder
                + "/keys").split(" ")).start().waitFor());
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(KeyStore.getInstance(folder.resolve("keys").toFile(), "secret".toCharArray()), "secret".toCharArray());
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        HttpsServer https = HttpsServer.create();
        https.setHttpsConfigurator(new HttpsConfigurator(context));
        server.stop(0);
        serve(https, 0);
        open("elasticsearch.hosts", "https://" + address());
        assertThrows(RetriableException.class, () -> write(false, record(0, "{}")));
        store.close();
        open("elasticsearch.ca", folder + "/ca.pem");
        assertEquals(Map.of(), write(false, record(0, "{}")));
    }
}
