package weir;

import com.netflix.zuul.filters.http.HttpOutboundSyncFilter;
import com.netflix.zuul.message.http.HttpResponseMessage;

/**
 * Passes every answer on as it is. It is here because the library's filter loader knows no empty list: without a filter for
 * answers, the first connection fails.
 */
public final class ToClient extends HttpOutboundSyncFilter {

    @Override
    public int filterOrder() {
        return 0;
    }

    @Override
    public boolean shouldFilter(HttpResponseMessage response) {
        return false;
    }

    @Override
    public HttpResponseMessage apply(HttpResponseMessage response) {
        return response;
    }
}
