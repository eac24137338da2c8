package weir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

import com.netflix.config.ConfigurationManager;
import com.netflix.zuul.netty.server.Server;

/**
 * Zuul 2 as a plain reverse proxy. The library is a set of parts; this program puts together what Netflix's own sample puts
 * together, without Eureka, push notifications and injection, and runs it until it is asked to end.
 *
 * <p>Usage: the path of a properties file, which is all the configuration there is, or {@code --version}.
 */
public final class Zuul2 {

    private Zuul2() {
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 1) {
            System.err.println("usage: java -jar zuul2.jar <properties file> | --version");
            System.exit(2);
        }
        if (args[0].equals("--version")) {
            System.out.println("zuul-core " + Server.class.getPackage().getImplementationVersion());
            return;
        }
        try {
            run(Path.of(args[0]));
        } catch (Exception e) {
            e.printStackTrace();
            // Ends the event loops too, which would keep a gateway that never listened alive.
            System.exit(1);
        }
    }

    private static void run(Path file) throws Exception {
        Properties properties = read(file);
        // The library's parts look their settings up in here, each by itself.
        ConfigurationManager.loadProperties(properties);

        Gateway gateway = new Gateway(new Settings(properties));
        gateway.init();
        Server server = gateway.server();
        server.start();
        server.awaitTermination();
    }

    private static Properties read(Path file) throws IOException {
        Properties properties = new Properties();
        try (InputStream in = Files.newInputStream(file)) {
            properties.load(in);
        }
        return properties;
    }
}
