//! The command from outside: the real binary, real sockets on loopback, one file a behaviour.

mod address_families;
mod bad_usage;
mod bench;
mod changes_under_way;
mod connection_loss;
mod existing_files;
mod files;
mod hostile_names;
mod inspect;
mod keep;
mod link;
mod pipes;
mod process;
mod scheme;
mod secrecy;
mod sim;
mod study;
mod tolerated_holes;
mod trust;
mod unreadable_files;
mod written_bytes;
