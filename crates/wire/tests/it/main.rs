//! All tests of the crate from outside but two, in one program: what is linked once is tested sooner.

#[path = "../common/counting.rs"]
mod counting;
#[path = "../common/grpc_oracle.rs"]
mod grpc_oracle;
#[path = "../common/http1_oracle.rs"]
mod http1_oracle;
#[path = "../common/http2_frames.rs"]
mod http2_frames;
#[path = "../common/http2_oracle.rs"]
mod http2_oracle;
#[path = "../common/http3_oracle.rs"]
mod http3_oracle;
#[path = "../common/juno_oracle.rs"]
mod juno_oracle;
#[path = "../common/memcached_oracle.rs"]
mod memcached_oracle;
#[path = "../common/messages_oracle.rs"]
mod messages;
#[path = "../common/http2_pipe.rs"]
mod pipe;
#[path = "../common/proxy_protocol_oracle.rs"]
mod proxy_protocol_oracle;
#[path = "../common/redis_oracle.rs"]
mod redis_oracle;
#[path = "../common/sse_oracle.rs"]
mod sse_oracle;
#[path = "../common/tls_oracle.rs"]
mod tls_oracle;
#[path = "../common/websocket_oracle.rs"]
mod websocket_oracle;

mod corpus;
mod http1_encode;
mod http1_limits;
mod http1_memory;
mod http1_properties;
mod http1_requests;
mod http1_responses;
mod http2_exchange;
mod http2_memory;
mod http2_properties;
mod http2_rules;
mod http3_exchange;
mod http3_rules;
mod juno_properties;
mod juno_rules;
mod memcached_properties;
mod memcached_rules;
mod messages_memory;
mod proxy_protocol;
mod redis_properties;
mod redis_rules;
mod sse;
mod tls;
