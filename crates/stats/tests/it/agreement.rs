//! Rank agreement: values computed by hand, and what must hold of any two orders.

use proptest::prelude::*;
use weir_stats::agreement;

fn kendall_tau(a: &[f64], b: &[f64]) -> Option<f64> {
    agreement(a, b).tau
}

fn opposite_pairs(a: &[f64], b: &[f64]) -> Vec<(usize, usize)> {
    agreement(a, b).opposite
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12, "{a} is not {b}");
}

#[test]
fn tau_of_small_orders() {
    assert_eq!(kendall_tau(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), Some(1.0));
    assert_eq!(kendall_tau(&[1.0, 2.0, 3.0], &[30.0, 20.0, 10.0]), Some(-1.0));
    // Of six pairs five are alike, one is opposite.
    close(kendall_tau(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 4.0, 3.0]).unwrap(), 4.0 / 6.0);
    // The first series orders five of six pairs, the second all, and they agree on the five: 5 / sqrt(5 x 6).
    close(kendall_tau(&[1.0, 2.0, 2.0, 4.0], &[1.0, 2.0, 3.0, 4.0]).unwrap(), 5.0 / 30_f64.sqrt());
    // Tied in both at once: counts for neither.
    assert_eq!(kendall_tau(&[1.0, 2.0, 2.0], &[1.0, 5.0, 5.0]), Some(1.0));
}

#[test]
fn tau_of_published_figures() {
    // Requests a second of five products, as published and with the first two swapped.
    let published = [42_047.0, 30_795.0, 29_280.0, 22_548.0, 1_574.0];
    let ours = [61_000.0, 62_000.0, 36_000.0, 21_000.0, 14_000.0];
    close(kendall_tau(&published, &ours).unwrap(), 0.8);
    assert_eq!(opposite_pairs(&published, &ours), [(0, 1)]);
}

#[test]
fn no_order_no_agreement() {
    assert_eq!(kendall_tau(&[1.0, 1.0], &[1.0, 2.0]), None);
    assert_eq!(kendall_tau(&[1.0], &[1.0]), None);
    assert_eq!(kendall_tau(&[], &[]), None);
    assert_eq!(kendall_tau(&[1.0, 2.0], &[1.0]), None);
    assert_eq!(kendall_tau(&[0.0, -0.0], &[1.0, 2.0]), None);
    assert_eq!(opposite_pairs(&[1.0, 2.0], &[1.0]), []);
}

#[test]
fn values_that_are_not_numbers_are_ignored() {
    assert_eq!(kendall_tau(&[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]), Some(1.0));
    assert_eq!(opposite_pairs(&[1.0, f64::NAN, 2.0], &[3.0, 2.0, 1.0]), [(0, 2)]);
}

fn orders() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    // Few different values, so that ties of every kind come up.
    prop::collection::vec((0_u8..6, 0_u8..6), 0..20)
        .prop_map(|xs| xs.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tau_is_bounded_and_symmetric((a, b) in orders()) {
        if let Some(tau) = kendall_tau(&a, &b) {
            prop_assert!((-1.0..=1.0).contains(&tau));
            let reversed: Vec<f64> = b.iter().map(|y| -y).collect();
            prop_assert_eq!(Some(tau), kendall_tau(&b, &a));
            prop_assert_eq!(Some(-tau), kendall_tau(&a, &reversed));
        }
    }

    #[test]
    fn any_rising_function_leaves_tau_alone((a, b) in orders()) {
        let bent: Vec<f64> = b.iter().map(|y| y.powi(3) + 7.0).collect();
        prop_assert_eq!(kendall_tau(&a, &b), kendall_tau(&a, &bent));
        prop_assert_eq!(opposite_pairs(&a, &b), opposite_pairs(&a, &bent));
    }

    #[test]
    fn an_order_agrees_with_itself((a, _) in orders()) {
        if let Some(tau) = kendall_tau(&a, &a) {
            prop_assert_eq!(tau, 1.0);
        }
        prop_assert!(opposite_pairs(&a, &a).is_empty());
    }

    #[test]
    fn opposite_pairs_and_tau_agree((a, b) in orders()) {
        // Without ties tau is 1 - 2 x opposite / all.
        let distinct = |xs: &[f64]| xs.iter().enumerate().all(|(i, x)| !xs[..i].contains(x));
        if distinct(&a) && distinct(&b) && a.len() > 1 {
            let all = (a.len() * (a.len() - 1) / 2) as f64;
            let tau = 1.0 - 2.0 * opposite_pairs(&a, &b).len() as f64 / all;
            prop_assert!((kendall_tau(&a, &b).unwrap() - tau).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_panics(a in prop::collection::vec(any::<f64>(), 0..12), b in prop::collection::vec(any::<f64>(), 0..12)) {
        let _ = (kendall_tau(&a, &b), opposite_pairs(&a, &b));
        let same = a.len().min(b.len());
        let _ = (kendall_tau(&a[..same], &b[..same]), opposite_pairs(&a[..same], &b[..same]));
    }
}
