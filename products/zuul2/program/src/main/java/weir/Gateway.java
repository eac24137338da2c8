package weir;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Set;

import com.netflix.appinfo.InstanceInfo.InstanceStatus;
import com.netflix.netty.common.accesslog.AccessLogPublisher;
import com.netflix.netty.common.channel.config.ChannelConfig;
import com.netflix.netty.common.channel.config.CommonChannelConfigKeys;
import com.netflix.netty.common.metrics.EventLoopGroupMetrics;
import com.netflix.netty.common.ssl.ServerSslConfig;
import com.netflix.netty.common.status.ServerStatusManager;
import com.netflix.spectator.api.DefaultRegistry;
import com.netflix.spectator.api.Registry;
import com.netflix.zuul.BasicRequestCompleteHandler;
import com.netflix.zuul.DefaultFilterFactory;
import com.netflix.zuul.FilterUsageNotifier;
import com.netflix.zuul.StaticFilterLoader;
import com.netflix.zuul.context.ZuulSessionContextDecorator;
import com.netflix.zuul.netty.server.BaseServerStartup;
import com.netflix.zuul.netty.server.ClientRequestReceiver;
import com.netflix.zuul.netty.server.DefaultEventLoopConfig;
import com.netflix.zuul.netty.server.DirectMemoryMonitor;
import com.netflix.zuul.netty.server.NamedSocketAddress;
import com.netflix.zuul.netty.server.ZuulServerChannelInitializer;
import com.netflix.zuul.netty.server.http2.Http2SslChannelInitializer;
import com.netflix.zuul.netty.ssl.BaseSslContextFactory;
import com.netflix.zuul.origins.BasicNettyOriginManager;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.group.ChannelGroup;

/**
 * The library's server with one listener, two filters and one origin. Nothing registers anywhere: there is no Eureka client,
 * and the status that one would publish goes nowhere.
 */
final class Gateway extends BaseServerStartup {

    private static final String LISTENER = "main";

    private final Settings settings;

    Gateway(Settings settings) {
        this(settings, new DefaultRegistry());
    }

    private Gateway(Settings settings, Registry registry) {
        super(
                new Unregistered(),
                new StaticFilterLoader(new DefaultFilterFactory(), Set.of(ToOrigin.class, ToClient.class)),
                new ZuulSessionContextDecorator(new BasicNettyOriginManager(registry)),
                counting(registry),
                new BasicRequestCompleteHandler(),
                registry,
                new DirectMemoryMonitor(registry),
                new EventLoopGroupMetrics(registry),
                new DefaultEventLoopConfig(),
                null,
                null,
                accessLog(settings));
        this.settings = settings;
    }

    /** Counts what each filter did, as the library's own notifier does, which only injection can make. */
    private static FilterUsageNotifier counting(Registry registry) {
        return (filter, status) -> registry.counter(
                "zuul.filter-" + filter.getClass().getSimpleName(),
                "status", status.name(),
                "filtertype", filter.filterType().toString()).increment();
    }

    /** {@code null} for none: the library then leaves the handler out. */
    private static AccessLogPublisher accessLog(Settings settings) {
        if (!settings.accessLog()) {
            return null;
        }
        return new AccessLogPublisher("ACCESS",
                (channel, request) -> ClientRequestReceiver.getRequestFromChannel(channel).getContext().getUUID());
    }

    @Override
    protected Map<NamedSocketAddress, ChannelInitializer<?>> chooseAddrsAndChannels(ChannelGroup clients) {
        ChannelConfig config = defaultChannelConfig(LISTENER);
        ChannelConfig dependencies = defaultChannelDependencies(LISTENER);
        // The defaults are for a listener behind a balancer that speaks the PROXY protocol.
        config.set(CommonChannelConfigKeys.withProxyProtocol, false);
        config.set(CommonChannelConfigKeys.preferProxyProtocolForClientIp, false);
        config.set(CommonChannelConfigKeys.isSSlFromIntermediary, false);

        InetSocketAddress address = new InetSocketAddress(settings.host(), settings.port());
        String metrics = String.valueOf(settings.port());
        ChannelInitializer<?> initializer;
        if (settings.tls()) {
            ServerSslConfig tls = tls();
            config.set(CommonChannelConfigKeys.serverSslConfig, tls);
            config.set(CommonChannelConfigKeys.sslContextFactory, new BaseSslContextFactory(registry, tls));
            addHttp2DefaultConfig(config, LISTENER);
            // Speaks HTTP/2 or HTTP/1.1, as the client asks for by ALPN.
            initializer = new Http2SslChannelInitializer(metrics, config, dependencies, clients);
        } else {
            initializer = new ZuulServerChannelInitializer(metrics, config, dependencies, clients);
        }
        return Map.of(new NamedSocketAddress(LISTENER, address), initializer);
    }

    private ServerSslConfig tls() {
        String[] suites = settings.suites();
        return new ServerSslConfig(
                settings.versions(),
                suites.length == 0 ? ServerSslConfig.getDefaultCiphers() : suites,
                settings.certificate(),
                settings.key());
    }

    /** Takes the server's status and tells nobody. */
    private static final class Unregistered extends ServerStatusManager {

        Unregistered() {
            super(null);
        }

        @Override
        public void localStatus(InstanceStatus status) {
        }
    }
}
