package weir;

import com.netflix.zuul.context.SessionContext;
import com.netflix.zuul.filters.endpoint.ProxyEndpoint;
import com.netflix.zuul.filters.http.HttpInboundSyncFilter;
import com.netflix.zuul.message.http.HttpRequestMessage;

/** Sends every request, whatever it asks for, to the origin that the properties file describes under {@link #ORIGIN}. */
public final class ToOrigin extends HttpInboundSyncFilter {

    /** What the settings of the origin's pool start with; Netflix's sample calls it so. */
    private static final String ORIGIN = "api";

    @Override
    public int filterOrder() {
        return 0;
    }

    @Override
    public boolean shouldFilter(HttpRequestMessage request) {
        return true;
    }

    @Override
    public HttpRequestMessage apply(HttpRequestMessage request) {
        SessionContext context = request.getContext();
        context.setEndpoint(ProxyEndpoint.class.getCanonicalName());
        context.setRouteVIP(ORIGIN);
        return request;
    }
}
