//! Tests of the C interface as C programs meet it: the header, the exported symbols and layouts, and the examples, compiled and run.

mod abi;
mod built;
mod examples;
mod header;
