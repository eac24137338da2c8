package weir;

import java.io.File;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/**
 * What this program itself, rather than one of the library's parts, reads of the properties file: all names that start with
 * {@code gateway.}. One that is not known is an error. It knows nothing of the library.
 */
final class Settings {

    private static final String PREFIX = "gateway.";
    private static final Set<String> KNOWN = Set.of(
            "gateway.host",
            "gateway.port",
            "gateway.access-log",
            "gateway.tls.certificate",
            "gateway.tls.key",
            "gateway.tls.versions",
            "gateway.tls.suites");

    private final Properties properties;

    Settings(Properties properties) {
        this.properties = properties;
        Set<String> unknown = new TreeSet<>();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith(PREFIX) && !KNOWN.contains(name)) {
                unknown.add(name);
            }
        }
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("unknown " + unknown + "; known are " + new TreeSet<>(KNOWN));
        }
    }

    /** The address to listen on. */
    String host() {
        return required("gateway.host");
    }

    /** The port to listen on. */
    int port() {
        return Integer.parseInt(required("gateway.port"));
    }

    /** Whether each request is written to the log; so it is in Netflix's sample. */
    boolean accessLog() {
        return Boolean.parseBoolean(properties.getProperty("gateway.access-log", "true"));
    }

    /** Whether clients speak TLS: a certificate is given. */
    boolean tls() {
        return properties.containsKey("gateway.tls.certificate");
    }

    /** PEM file of the certificate. */
    File certificate() {
        return new File(required("gateway.tls.certificate"));
    }

    /** PEM file of its key. */
    File key() {
        return new File(required("gateway.tls.key"));
    }

    /** TLS versions, as {@code TLSv1.3}; those of Netflix's sample that are still safe when nothing is said. */
    String[] versions() {
        return list("gateway.tls.versions", List.of("TLSv1.3", "TLSv1.2"));
    }

    /** Suites by name; empty for all that the library's default names. */
    String[] suites() {
        return list("gateway.tls.suites", List.of());
    }

    private String[] list(String name, List<String> otherwise) {
        String text = properties.getProperty(name);
        return text == null ? otherwise.toArray(new String[0]) : text.split(",");
    }

    private String required(String name) {
        String text = properties.getProperty(name);
        if (text == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return text;
    }
}
