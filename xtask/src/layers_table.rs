//! The table of layers: which of our crates each of our crates may use.
//!
//! Called by `layers` and `purity`. A new crate needs a row here and one in the table of
//! `ARCHITECTURE.md`.
//!
//! Invariant: a row names only rows above it, so the dependencies have no cycle.

/// One of our crates and what it may depend on.
pub(crate) struct Layer {
    /// The short name: the package name without `segstream-`.
    pub(crate) name: &'static str,
    /// The crates it may use.
    pub(crate) uses: &'static [&'static str],
    /// The crates its tests may use besides.
    pub(crate) tests_use: &'static [&'static str],
    /// Whether it must know no clock, socket, thread, file or entropy.
    pub(crate) pure: bool,
}

const fn pure(name: &'static str, uses: &'static [&'static str]) -> Layer {
    Layer { name, uses, tests_use: &[], pure: true }
}

const fn outer(name: &'static str, uses: &'static [&'static str]) -> Layer {
    Layer { name, uses, tests_use: &[], pure: false }
}

impl Layer {
    const fn tested_with(mut self, tests_use: &'static [&'static str]) -> Self {
        self.tests_use = tests_use;
        self
    }
}

/// Every layer, lowest first.
pub(crate) const LAYERS: &[Layer] = &[
    pure("base", &[]),
    pure("blocks", &["base"]),
    pure("wire", &["base"]),
    pure("path", &["base"]),
    pure("schemes", &["base", "blocks"]),
    pure("network", &["base", "path"]),
    // Of the network it uses how capture files are written. What a shared link is tested with: its cross traffic.
    pure("sim", &["base", "path", "network"]).tested_with(&["blocks", "schemes"]),
    // A protocol is tested over the black box, in virtual time.
    pure("proto", &["base", "blocks", "wire"]).tested_with(&["path", "network"]),
    // Real programs at the two ends of an emulated link: for tests and measurements, so that nothing shipped may use it.
    outer("testbed", &[]),
    outer("secure", &["base", "wire", "proto"]).tested_with(&["path", "network", "testbed"]),
    outer("net", &["base", "path"]),
    outer("segstream", &["base", "blocks", "wire", "proto", "secure", "net"]).tested_with(&["path"]),
    outer("lab", &["base", "blocks", "wire", "path", "proto", "schemes", "sim", "net"]).tested_with(&["testbed"]),
    // The facade behind a C interface; no crate of Rust may need it.
    outer("c", &["segstream"]),
    // An example of what users write: it stands on the facade, and is studied in the laboratory.
    outer("own-controller", &["segstream"]).tested_with(&["base", "lab"]),
    // Our path beside ns-3's; no crate may depend on it.
    outer("ns3", &["base", "path", "lab"]),
    outer("studies", &["base", "blocks", "path", "schemes", "lab"]),
    // The protocol under a model checker; nothing shipped may use it either.
    outer("model", &["base", "blocks", "wire", "proto"]),
    // Whole endpoints over the black box in virtual time: for tests, so that nothing shipped may use it.
    outer("swarm", &["base", "blocks", "wire", "path", "network", "proto", "secure"]),
    // The wake-ups of `net` under a model checker of threads; it compiles their files, and depends on nothing of ours.
    outer("wakeups", &[]),
    // Attacks on real endpoints, each in a process of its own: for tests and `ci`; no crate may depend on it.
    outer("siege", &["base", "wire", "proto", "secure", "net", "segstream"]),
    outer("cli", &["base", "blocks", "wire", "path", "schemes", "sim", "proto", "secure", "net", "segstream", "lab", "studies"])
        .tested_with(&["testbed"]),
    outer("bench", ANYTHING),
    outer("fuzz", ANYTHING),
    // Other transports as ends of the same measurements: it speaks with ours by lines of JSON only.
    outer("peers", &[]),
    // The package for Python: a workspace of its own.
    outer("python", &["base", "schemes", "segstream", "lab", "studies"]),
    outer("xtask", &[]),
];

/// What a crate may use that is outside the layers and that no crate depends on.
const ANYTHING: &[&str] = &[
    "base",
    "blocks",
    "wire",
    "path",
    "network",
    "schemes",
    "sim",
    "proto",
    "secure",
    "net",
    "segstream",
    "lab",
    "studies",
    "testbed",
    "cli",
    "c",
];

/// Libraries that reach a clock, a socket, a thread or entropy; no pure layer may depend on one.
pub(crate) const IMPURE_LIBRARIES: &[&str] =
    &["getrandom", "libc", "mio", "nix", "polling", "quinn-udp", "rand", "rayon", "rustix", "socket2", "tokio"];

/// The row of the crate with this short name.
pub(crate) fn layer(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

/// The short name of a package.
pub(crate) fn short_name(package: &str) -> &str {
    package.strip_prefix("segstream-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_only_rows_above_it() {
        for (at, layer) in LAYERS.iter().enumerate() {
            for used in layer.uses.iter().chain(layer.tests_use) {
                assert!(LAYERS[..at].iter().any(|above| above.name == *used), "{} names {used}, which is not above it", layer.name);
            }
        }
    }

    #[test]
    fn a_pure_layer_stands_on_pure_layers_only() {
        for layer in LAYERS.iter().filter(|layer| layer.pure) {
            assert!(layer.uses.iter().all(|used| super::layer(used).is_some_and(|used| used.pure)), "{}", layer.name);
        }
    }
}
