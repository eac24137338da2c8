//! weir in a simulated world: exact numbers, on virtual time.

mod bad_products;
mod crash;
mod duet;
mod expiry;
mod faults;
mod hosts;
mod kept;
mod load;
mod members;
mod omission;
mod preload;
mod reload;
mod seeds;
mod series;
mod served;
mod slow_clients;
mod stores;
mod streams;
mod waits;
