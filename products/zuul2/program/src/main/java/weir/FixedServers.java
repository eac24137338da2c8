package weir;

import java.util.ArrayList;
import java.util.List;

import com.netflix.appinfo.InstanceInfo;
import com.netflix.client.config.CommonClientConfigKey;
import com.netflix.client.config.IClientConfig;
import com.netflix.loadbalancer.AbstractServerList;
import com.netflix.niws.loadbalancer.DiscoveryEnabledServer;

/**
 * The origin's servers as {@code listOfServers} names them. Ribbon's own list of that kind makes servers of a type that the
 * library's resolver does not take: it wants those that Eureka would have found, so that is what these look like.
 */
public final class FixedServers extends AbstractServerList<DiscoveryEnabledServer> {

    private List<DiscoveryEnabledServer> servers = List.of();

    @Override
    public void initWithNiwsConfig(IClientConfig config) {
        List<DiscoveryEnabledServer> found = new ArrayList<>();
        for (String address : config.get(CommonClientConfigKey.ListOfServers, "").split(",")) {
            found.add(server(address.strip()));
        }
        servers = List.copyOf(found);
    }

    private static DiscoveryEnabledServer server(String address) {
        int colon = address.lastIndexOf(':');
        if (colon < 1) {
            throw new IllegalArgumentException("listOfServers: \"" + address + "\" is not a host and a port");
        }
        String host = address.substring(0, colon);
        InstanceInfo instance = InstanceInfo.Builder.newBuilder()
                .setAppName("origin")
                .setInstanceId(address)
                .setHostName(host)
                .setIPAddr(host)
                .setPort(Integer.parseInt(address.substring(colon + 1)))
                .build();
        return new DiscoveryEnabledServer(instance, false, true);
    }

    @Override
    public List<DiscoveryEnabledServer> getInitialListOfServers() {
        return servers;
    }

    @Override
    public List<DiscoveryEnabledServer> getUpdatedListOfServers() {
        return servers;
    }
}
