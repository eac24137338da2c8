package weir;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.cloud.netflix.zuul.EnableZuulProxy;
import org.springframework.context.annotation.Bean;

/**
 * Zuul 1 with nothing added: routes and everything else come from the configuration file that the command line names.
 * {@code --version} prints the versions of the library and of what binds it to Spring, as their jars record them, and ends.
 */
@SpringBootApplication
@EnableZuulProxy
@EnableConfigurationProperties(Listener.class)
public class Zuul1 {

    public static void main(String[] args) {
        if (args.length == 1 && args[0].equals("--version")) {
            String library = com.netflix.zuul.ZuulFilter.class.getPackage().getImplementationVersion();
            String binding = EnableZuulProxy.class.getPackage().getImplementationVersion();
            System.out.println("zuul-core " + library + ", spring-cloud-netflix-zuul " + binding);
            return;
        }
        SpringApplication.run(Zuul1.class, args);
    }

    /** Hands what {@link Listener} says to Tomcat. */
    @Bean
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> listenerCustomizer(Listener listener) {
        return factory -> factory.addConnectorCustomizers(listener::customize);
    }
}
