package weir;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.web.embedded.netty.NettyServerCustomizer;
import org.springframework.context.annotation.Bean;
import reactor.netty.http.server.HttpServer;
import reactor.netty.tcp.SslProvider;

/**
 * Spring Cloud Gateway with nothing added but a way to forbid the resumption of TLS sessions, for which Spring Boot has no
 * key. Routes and everything else come from the configuration file that the command line names. {@code --version} prints the
 * version of the gateway's library, as the library itself records it, and ends.
 */
@SpringBootApplication
public class Gateway {

    /** Where Maven leaves a library's coordinates inside its jar. */
    private static final String LIBRARY =
            "/META-INF/maven/org.springframework.cloud/spring-cloud-gateway-server-webflux/pom.properties";

    /** Seconds: one more than the virtual machine gives tickets for. It gives none then. */
    private static final int TOO_LONG_FOR_TICKETS = 7 * 24 * 3600 + 1;

    public static void main(String[] args) throws IOException {
        if (args.length == 1 && args[0].equals("--version")) {
            System.out.println("spring-cloud-gateway " + version());
            return;
        }
        SpringApplication.run(Gateway.class, args);
    }

    /**
     * With {@code listener.resumption: false}, no tickets over TLS 1.3. For TLS 1.2 the virtual machine needs
     * {@code -Djdk.tls.server.enableSessionTicketExtension=false} beside it: it would promise a ticket and give none, and
     * clients would take that for an error.
     */
    @Bean
    @ConditionalOnProperty(name = "listener.resumption", havingValue = "false")
    NettyServerCustomizer noResumption() {
        return Gateway::forbidResumption;
    }

    private static HttpServer forbidResumption(HttpServer server) {
        SslProvider tls = server.configuration().sslProvider();
        if (tls != null) {
            tls.getSslContext().sessionContext().setSessionTimeout(TOO_LONG_FOR_TICKETS);
        }
        return server;
    }

    private static String version() throws IOException {
        try (InputStream file = Gateway.class.getResourceAsStream(LIBRARY)) {
            if (file == null) {
                throw new IOException(LIBRARY + " is not in this jar: the library was made in another way than expected");
            }
            Properties properties = new Properties();
            properties.load(file);
            return properties.getProperty("version");
        }
    }
}
