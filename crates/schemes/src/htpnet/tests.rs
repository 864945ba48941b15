//! HTPNET in virtual time: each test names the claim it proves.

mod avoidance;
mod bytes;
mod classes;
mod connection;
mod exchange;
mod link;
mod stages;
mod time_slip;
