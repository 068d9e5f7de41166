import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/**
 * Gets tokens from the tests' own issuer, which the environment names, in place of the class of Amazon's library.
 */
public class IssuedTokens implements AuthenticateCallbackHandler {
    private static final Pattern TOKEN = Pattern.compile("\"access_token\": *\"([^\"]+)\"");
    private static final long LIFE_MS = 300_000;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}

    @Override
    public void close() {}

    @Override
    public void handle(Callback[] callbacks) throws IOException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerTokenCallback asked) {
                asked.token(new Issued(token(), System.currentTimeMillis()));
            }
        }
    }

    private static String token() throws IOException {
        byte[] client = System.getenv("TOKEN_ISSUER_SECRET").getBytes(StandardCharsets.UTF_8);
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("TOKEN_ISSUER_URL")))
            .header("Authorization", "Basic " + Base64.getEncoder().encodeToString(client))
            .POST(HttpRequest.BodyPublishers.ofString("grant_type=client_credentials&scope=kafka"))
            .version(HttpClient.Version.HTTP_1_1)
            .build();
        try {
            String answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
            Matcher found = TOKEN.matcher(answer);
            if (!found.find()) {
                throw new IOException("the issuer gave no token");
            }
            return found.group(1);
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    private record Issued(String value, Long startTimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of("kafka");
        }

        @Override
        public long lifetimeMs() {
            return startTimeMs + LIFE_MS;
        }

        @Override
        public String principalName() {
            return "us";
        }
    }
}
