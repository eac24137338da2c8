//! The same cases on every driver: those of the kernel, with plain sockets and threads as peers, and the simulated one.

mod cases;
mod common;
mod host;

/// Makes a module of tests, one for each case, on a network.
macro_rules! cases_on {
    ($on:path; $($module:ident :: $name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $on(crate::cases::$module::$name);
            }
        )*
    };
}

/// The drivers of the kernel run all cases. On a kernel without io_uring those for it fail on purpose.
macro_rules! on_kernel {
    ($cases:tt) => {
        mod epoll {
            on_kernel!(@ $cases, weir_net::EpollDriver, weir_net::EpollDriver::new);
        }
        mod io_uring {
            on_kernel!(@ $cases, weir_net::UringDriver, weir_net::UringDriver::new);
        }
        // No connection has a descriptor.
        mod io_uring_in_the_table {
            on_kernel!(@ $cases, weir_net::UringDriver, || {
                weir_net::UringDriver::with_descriptors(weir_net::DescriptorKind::Direct)
            });
        }
        // Two small receive buffers: the driver is always short of them.
        mod io_uring_short_of_buffers {
            on_kernel!(@ $cases, weir_net::UringDriver, || {
                weir_net::UringDriver::with_receive_buffers(weir_net::BufferFill::Once, 2, 512)
            });
        }
        // Buffers filled by several receives: a receive often reaches the end of one. It takes Linux 6.15.
        mod io_uring_through_buffers {
            on_kernel!(@ $cases, weir_net::UringDriver, || {
                weir_net::UringDriver::with_receive_buffers(weir_net::BufferFill::Through, 2, 1000)
            });
        }
    };
    (@ {$($cases:tt)*}, $driver:ty, $make:expr) => {
        fn run(case: fn(&crate::common::Kernel<$driver>)) {
            case(&crate::common::Kernel::new($make));
        }
        cases_on!(run; $($cases)*);
    };
}

macro_rules! on_every_driver {
    (few_bytes { $($few:tt)* } many_bytes { $($many:tt)* }) => {
        on_kernel! {{
            $($few)*
            $($many)*
            // A simulated peer's buffer is as large, whatever its segments are.
            limits::a_slow_reader_leaves_most_with_the_peer,
            // It reads the kernel's table of sockets.
            ends::sockets_do_not_leak,
            // Simulated Unix sockets have no files.
            unix::an_abstract_socket_has_a_name_and_no_file,
            unix::only_paths_of_dead_servers_are_taken_over,
            // A simulated port is the next free one.
            waits::ports_are_tried_alike_on_request,
        }}
        mod simulated {
            cases_on!(crate::common::in_every_world; $($few)*);
            cases_on!(crate::common::in_coarse_worlds; $($many)*);
        }
    };
}

on_every_driver! {
    few_bytes {
        datagrams::one_socket_has_many_peers,
        datagrams::where_nobody_listens_the_socket_fails,
        datagrams::a_socket_may_be_closed_and_its_successor_gets_nothing_of_it,
        datagrams::more_than_one_call_takes_comes_whole,
        echo::one_byte_comes_back,
        ends::abort_resets_the_peer,
        ends::refused_connect_fails_once,
        limits::an_end_is_reported_when_something_is_received_for_again,
        limits::what_cannot_be_sent_is_a_failure_though_nothing_is_received,
        ends::data_before_a_reset_is_delivered_before_the_failure,
        ends::a_reset_at_once_with_data_is_noticed_by_what_is_sent,
        ends::close_before_connected_emits_no_event,
        ends::a_stale_connection_does_not_affect_its_successor,
        ends::closing_inside_any_event_is_allowed,
        ends::connecting_inside_events_is_allowed,
        ends::a_listener_refuses_for_a_while_and_accepts_again,
        ends::stop_listening_refuses_new_peers,
        unix::a_full_queue_of_a_unix_socket_is_waited_for,
        unix::unix_peers_are_echoed_and_closed,
        waits::a_wait_is_not_early,
        waits::until_in_the_past_returns_at_once,
        waits::the_waker_ends_a_wait,
        waits::a_wait_goes_on_for_what_is_gathered,
        waits::source_addresses_are_bound,
    }
    // Too many for worlds that pass a few at a time.
    many_bytes {
        datagrams::a_train_comes_whole_and_says_from_whom,
        echo::every_length_comes_back,
        echo::a_mebibyte_comes_back_to_a_slow_reader,
        echo::two_thousand_connections,
        echo::many_large_messages_at_once,
        echo::random_interleavings_lose_nothing,
        send::static_bodies_come_whole_to_fast_and_slow_readers,
        send::bodies_and_bytes_keep_their_order,
        send::close_while_sending_flushes_all,
        send::sent_comes_once_when_the_queue_is_empty,
        send::unsent_counts_down_to_zero,
        skip::large_messages_are_dropped_and_small_ones_come,
        skip::closing_in_the_event_of_what_was_dropped_is_allowed,
        skip::an_end_in_what_is_dropped_is_reported,
        skip::a_connection_that_drops_can_be_closed_and_its_successor_gets_all,
        ends::abort_while_blocked_resets_the_peer,
        limits::a_peer_is_stopped_while_nothing_is_received,
        limits::a_connection_that_receives_can_be_stopped,
        hostile::no_peer_leaves_a_connection_behind,
        hostile::a_server_that_resets_leaves_no_connection_behind,
        hostile::floods_end_when_they_are_closed,
        ends::a_failure_reports_the_unsent_bytes,
        skip::a_reset_in_what_is_dropped_is_a_failure,
        ends::after_eof_the_connection_can_still_send,
        unix::both_ends_of_a_unix_socket_are_drivers,
        send::what_is_sent_before_connected_arrives,
        ends::a_reset_in_mid_data_fails_once,
    }
}
