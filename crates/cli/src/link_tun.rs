//! `segstream link --tun`: the link between two network namespaces.
//!
//! Called by [`crate::link`], which has the flags of the path; the emulator itself is `segstream_net::link::tun`.
//!
//! Invariant: what the command line has wrong is bad usage, and nothing has been made by then.

use crate::interruption::Interruption;
use crate::metrics_server::MetricsArgument;
use anyhow::Result;
use clap::Args;
use segstream_base::random::Seed;
use segstream_net::link::LinkReport;
use segstream_path::PathConfig;

/// The flags of the two ends.
#[derive(Debug, Args)]
pub(crate) struct TunArguments {
    /// Connects two network namespaces and creates an interface in each. A namespace is a name from `ip netns` or a path such
    /// as /proc/4711/ns/net. NS1 takes the place of --listen, NS2 that of --to. Needs Linux and root.
    #[arg(long, num_args = 2, value_names = ["NS1", "NS2"], conflicts_with_all = ["listen", "to"])]
    tun: Option<Vec<String>>,
    /// The addresses of the two interfaces, with a prefix length if it is not 24 (64 for IPv6) [default:
    /// 10.77.0.1,10.77.0.2].
    #[arg(long, value_name = "A,B", requires = "tun", conflicts_with_all = ["listen", "to"])]
    tun_addresses: Option<String>,
}

/// Relays between namespaces until it is interrupted.
#[cfg(target_os = "linux")]
pub(crate) fn relay(
    arguments: &TunArguments,
    (forward, back): (PathConfig, PathConfig),
    seed: Seed,
    (speed, metrics): (String, &MetricsArgument),
    interruption: &Interruption,
) -> Result<LinkReport> {
    use crate::usage;
    use segstream_net::link::tun::addresses::AddressesError;
    use segstream_net::link::tun::{TunAddresses, TunConfig, TunLink};
    let Some([first, second]) = arguments.tun.as_deref() else {
        return Err(usage::bad("the link has no ends; give --listen and --to, or --tun and two network namespaces"));
    };
    let addresses: TunAddresses = match &arguments.tun_addresses {
        Some(text) => text.parse().map_err(|error: AddressesError| usage::bad(error.to_string()))?,
        None => TunAddresses::default(),
    };
    let config = TunConfig { addresses, forward, back, seed, ..TunConfig::new(first, second) };
    let mut link = TunLink::open(&config).map_err(explain)?;
    let metrics = metrics.serve_link(|| link.watch())?;
    let [there, here] = link.interfaces();
    eprintln!("{first} has {} on {there}, {second} has {} on {here}", addresses.first(), addresses.second());
    eprintln!("relaying between them at {speed}; interrupt to end");
    eprintln!("{}", crate::link::PRIORITY);
    if let Some(told) = metrics {
        eprintln!("{told}");
    }
    Ok(link.run(interruption.flag())?)
}

/// What the configuration refuses is bad usage, what the system refuses is a failure.
#[cfg(target_os = "linux")]
fn explain(error: segstream_net::link::tun::TunError) -> anyhow::Error {
    use segstream_net::link::tun::TunError;
    match error {
        TunError::Link(error) => crate::link::explain(error),
        TunError::NoSuchNamespace { .. } | TunError::NoNamespace { .. } | TunError::SameNamespace { .. } => {
            crate::usage::bad(error.to_string())
        }
        error => error.into(),
    }
}

/// Refuses: there are no network namespaces.
#[cfg(not(target_os = "linux"))]
pub(crate) fn relay(
    _: &TunArguments,
    _: (PathConfig, PathConfig),
    _: Seed,
    _: (String, &MetricsArgument),
    _: &Interruption,
) -> Result<LinkReport> {
    Err(crate::usage::bad("only Linux has network namespaces; give --listen and --to instead of --tun"))
}
