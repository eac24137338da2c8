package weir;

import java.util.List;

import org.apache.catalina.connector.Connector;
import org.apache.coyote.http11.AbstractHttp11JsseProtocol;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.ConstructorBinding;

/**
 * What Tomcat has a setting for and Spring Boot 2.3 has none: a certificate and key from PEM files, suites by their OpenSSL
 * names, and how many requests a connection may carry. Everything is optional; what is left out stays as Tomcat has it.
 * A property that is not named here is an error.
 */
@ConstructorBinding
@ConfigurationProperties(prefix = "listener", ignoreUnknownFields = false)
public final class Listener {

    /** Seconds: one more than the virtual machine gives tickets for. It gives none then. */
    private static final int TOO_LONG_FOR_TICKETS = 7 * 24 * 3600 + 1;

    private final Integer maxKeepAliveRequests;
    private final String certificate;
    private final String key;
    private final boolean http2;
    private final Integer streams;
    private final List<String> protocols;
    private final List<String> ciphers;
    private final Boolean resumption;

    /**
     * @param maxKeepAliveRequests requests after which a connection of HTTP/1.1 is closed; -1 for never
     * @param certificate          PEM file of the certificate; without it the listener speaks no TLS
     * @param key                  PEM file of its key
     * @param http2                whether HTTP/2 is offered beside HTTP/1.1 when TLS is negotiated
     * @param streams              requests of one HTTP/2 connection that are let in and worked on at a time
     * @param protocols            TLS versions, as {@code TLSv1.3}
     * @param ciphers              suites, as OpenSSL or the standards name them
     * @param resumption           whether a client may resume a session; {@code false} needs
     *                             {@code -Djdk.tls.server.enableSessionTicketExtension=false} beside it, or the virtual
     *                             machine promises TLS 1.2 clients a ticket and gives none
     */
    public Listener(Integer maxKeepAliveRequests, String certificate, String key, boolean http2, Integer streams,
            List<String> protocols, List<String> ciphers, Boolean resumption) {
        this.maxKeepAliveRequests = maxKeepAliveRequests;
        this.certificate = certificate;
        this.key = key;
        this.http2 = http2;
        this.streams = streams;
        this.protocols = protocols;
        this.ciphers = ciphers;
        this.resumption = resumption;
    }

    /** Configures {@code connector} before it listens. */
    void customize(Connector connector) {
        AbstractHttp11JsseProtocol<?> protocol = (AbstractHttp11JsseProtocol<?>) connector.getProtocolHandler();
        if (maxKeepAliveRequests != null) {
            protocol.setMaxKeepAliveRequests(maxKeepAliveRequests);
        }
        if (certificate == null) {
            return;
        }
        connector.setScheme("https");
        connector.setSecure(true);
        protocol.setSSLEnabled(true);
        connector.addSslHostConfig(tls());
        if (http2) {
            connector.addUpgradeProtocol(http2());
        }
    }

    private SSLHostConfig tls() {
        SSLHostConfig host = new SSLHostConfig();
        SSLHostConfigCertificate pair =
                new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED);
        pair.setCertificateFile(certificate);
        pair.setCertificateKeyFile(key);
        host.addCertificate(pair);
        if (protocols != null) {
            host.setProtocols(String.join("+", protocols));
        }
        if (ciphers != null) {
            host.setCiphers(String.join(":", ciphers));
        }
        if (resumption != null && !resumption) {
            host.setSessionTimeout(TOO_LONG_FOR_TICKETS);
        }
        return host;
    }

    private Http2Protocol http2() {
        Http2Protocol http2 = new Http2Protocol();
        if (streams != null) {
            // Never below what Tomcat allows by itself: a client that opens a stream more would be refused.
            http2.setMaxConcurrentStreams(Math.max(streams, http2.getMaxConcurrentStreams()));
            http2.setMaxConcurrentStreamExecution(Math.max(streams, http2.getMaxConcurrentStreamExecution()));
        }
        return http2;
    }
}
