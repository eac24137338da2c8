//! Seeded noise for simulations.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// The given number of standard normals, by Box and Muller.
pub fn normals(random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| normal(random)).collect()
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
