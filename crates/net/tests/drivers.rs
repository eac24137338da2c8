//! The same tests on every driver, with plain `std::net` sockets and threads as peers.

mod common;

mod cases;

/// Instantiates each generic test function for both drivers.
macro_rules! on_both_drivers {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod epoll {
            $(
                #[test]
                fn $name() {
                    crate::cases::$module::$name(weir_net::EpollDriver::new);
                }
            )*
        }
        mod io_uring {
            $(
                #[test]
                fn $name() {
                    crate::cases::$module::$name(weir_net::UringDriver::new);
                }
            )*
        }
    };
}

on_both_drivers! {
    echo::one_byte_comes_back,
    echo::a_mebibyte_comes_back_to_a_slow_reader,
}
