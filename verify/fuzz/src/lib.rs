//! The fuzz targets of Segstream as plain functions: bytes in, a panic when a promise is broken.
//!
//! Called by libFuzzer through `fuzz_targets/` (`cargo +nightly fuzz run --fuzz-dir verify/fuzz <target>`), and by the test below,
//! which runs every target on its seeds and on random bytes with a stable toolchain. To add a target: a
//! module here with a function `check`, a line in [`TARGETS`], a file in `fuzz_targets/`, a `[[bin]]` in
//! `Cargo.toml` and a folder of seeds in `corpus/`. An input that once failed is kept there as a seed.

// A target that calls the C interface says why each use of its pointers is sound; the others have none.
#![deny(unsafe_code)]

pub mod c_calls;
pub mod decode_shipment;
pub mod endpoint_datagrams;
pub mod handshake;
pub mod loss_spec;
mod pair;
pub mod path_spec;
#[cfg(test)]
mod seeds;

/// A target: takes any bytes and panics when a promise is broken.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its file and of its folder of seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("c_calls", c_calls::check),
    ("decode_shipment", decode_shipment::check),
    ("endpoint_datagrams", endpoint_datagrams::check),
    ("handshake", handshake::check),
    ("loss_spec", loss_spec::check),
    ("path_spec", path_spec::check),
];

#[cfg(test)]
mod tests {
    use super::TARGETS;
    use segstream_base::random::{Random, Seed};
    use std::path::{Path, PathBuf};

    /// Inputs derived from each seed, and inputs of random bytes alone.
    const ROUNDS: usize = 2_000;
    /// Of those that take long.
    const FEW_ROUNDS: usize = 60;

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    fn names(folder: &Path) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    fn random_bytes(random: &mut Random, len_max: u64) -> Vec<u8> {
        (0..random.below(len_max)).map(|_| random.bits() as u8).collect()
    }

    /// Overwrites a few bytes, and cuts or lengthens the end.
    fn changed(seed: &[u8], random: &mut Random) -> Vec<u8> {
        let mut input = seed.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(input.len() as u64) as usize;
            if let Some(byte) = input.get_mut(at) {
                *byte = random.bits() as u8;
            }
        }
        if random.chance(0.3) {
            input.truncate(random.below(input.len() as u64 + 1) as usize);
        }
        if random.chance(0.3) {
            input.extend(random_bytes(random, 16));
        }
        input
    }

    #[test]
    fn no_seed_no_change_of_one_and_no_random_input_breaks_a_promise() {
        for (name, check) in TARGETS {
            let mut random = Seed(1).stream(name);
            // A handshake has signatures in it, and a C program sockets.
            let rounds = if ["c_calls", "handshake"].contains(name) { FEW_ROUNDS } else { ROUNDS };
            let seeds: Vec<Vec<u8>> = names(&folder("corpus").join(name)).iter().map(|path| std::fs::read(path).unwrap()).collect();
            assert!(!seeds.is_empty(), "corpus/{name} has no seeds");
            for seed in &seeds {
                check(seed);
                (0..rounds).for_each(|_| check(&changed(seed, &mut random)));
            }
            (0..rounds).for_each(|_| check(&random_bytes(&mut random, 1500)));
        }
    }

    #[test]
    fn every_target_of_the_fuzzer_is_in_the_table() {
        let files: Vec<String> =
            names(&folder("fuzz_targets")).iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let mut table: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        table.sort_unstable();
        assert_eq!(files, table);
    }
}
