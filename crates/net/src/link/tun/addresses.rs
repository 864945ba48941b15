//! The addresses of the two ends of a link between namespaces.
//!
//! Used by the command line parser and the devices.
//!
//! Invariant: the two addresses are different hosts of one subnet, so that each end has a route to the other.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// The addresses of the two ends. Written `10.77.0.1,10.77.0.2`, or both with the same prefix length:
/// `10.77.0.1/30,10.77.0.2/30`. The default prefix length is 24 for IPv4 and 64 for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunAddresses {
    ends: [IpAddr; 2],
    prefix: u8,
}

/// Why two addresses cannot be used for a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressesError {
    /// Not two addresses.
    #[error("\"{text}\" is not two IP addresses; write them with a comma between, such as 10.77.0.1,10.77.0.2")]
    NotTwo {
        /// What was written.
        text: String,
    },
    /// The prefix leaves no room for two hosts, or there are two prefixes.
    #[error(
        "\"{text}\" does not say how long the network's prefix is; write the same length behind both addresses, such as 10.77.0.1/24,10.77.0.2/24"
    )]
    Prefix {
        /// What was written.
        text: String,
    },
    /// Both addresses are the same.
    #[error("both ends cannot have the address {address}; give them different ones of one network, such as 10.77.0.1,10.77.0.2")]
    Same {
        /// The address of both.
        address: IpAddr,
    },
    /// The addresses are in different subnets.
    #[error(
        "{first} and {second} are not in the same /{prefix} network, so the ends cannot reach each other; give two of one network, such as 10.77.0.1,10.77.0.2, or a shorter prefix"
    )]
    Apart {
        /// The first.
        first: IpAddr,
        /// The second.
        second: IpAddr,
        /// The prefix's length.
        prefix: u8,
    },
    /// The address is not a host address.
    #[error("{address} cannot be the address of an interface; give one such as 10.77.0.1")]
    NoHost {
        /// The address.
        address: IpAddr,
    },
}

impl TunAddresses {
    /// Two addresses of one network whose prefix has `prefix` bits.
    ///
    /// # Errors
    /// Addresses that are the same, of two networks, or of no host.
    pub fn new(first: IpAddr, second: IpAddr, prefix: u8) -> Result<Self, AddressesError> {
        if first == second {
            return Err(AddressesError::Same { address: first });
        }
        if let Some(address) =
            [first, second].into_iter().find(|address| address.is_unspecified() || address.is_multicast() || address.is_loopback())
        {
            return Err(AddressesError::NoHost { address });
        }
        if network(first, prefix).is_none() || network(first, prefix) != network(second, prefix) {
            return Err(AddressesError::Apart { first, second, prefix });
        }
        Ok(Self { ends: [first, second], prefix })
    }

    /// The address of the first end.
    pub fn first(&self) -> IpAddr {
        self.ends[0]
    }

    /// The address of the second end.
    pub fn second(&self) -> IpAddr {
        self.ends[1]
    }

    /// The length of the network's prefix in bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl Default for TunAddresses {
    /// 10.77.0.1 and 10.77.0.2 of a network of 24 bits.
    fn default() -> Self {
        Self { ends: [Ipv4Addr::new(10, 77, 0, 1).into(), Ipv4Addr::new(10, 77, 0, 2).into()], prefix: 24 }
    }
}

impl fmt::Display for TunAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ends: [first, second], prefix } = self;
        write!(f, "{first}/{prefix},{second}/{prefix}")
    }
}

impl FromStr for TunAddresses {
    type Err = AddressesError;

    fn from_str(text: &str) -> Result<Self, AddressesError> {
        let not_two = || AddressesError::NotTwo { text: text.to_owned() };
        let unclear = || AddressesError::Prefix { text: text.to_owned() };
        let (first, second) = text.split_once(',').ok_or_else(not_two)?;
        let parts = |end: &'_ str| -> Result<(IpAddr, Option<u8>), AddressesError> {
            let (address, prefix) = end.trim().split_once('/').map_or((end.trim(), None), |(address, prefix)| (address, Some(prefix)));
            let prefix = prefix.map(|prefix| prefix.parse().map_err(|_| unclear())).transpose()?;
            Ok((address.parse().map_err(|_| not_two())?, prefix))
        };
        let ((first, prefix), (second, same)) = (parts(first)?, parts(second)?);
        if prefix != same {
            return Err(unclear());
        }
        let prefix = prefix.unwrap_or(if first.is_ipv4() { 24 } else { 64 });
        if prefix > if first.is_ipv4() { 32 } else { 128 } {
            return Err(unclear());
        }
        Self::new(first, second, prefix)
    }
}

/// The first `prefix` bits of `address` with its family; `None` when it has fewer.
fn network(address: IpAddr, prefix: u8) -> Option<(bool, u128)> {
    let (bits, length) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let host = u32::checked_sub(length, u32::from(prefix))?;
    Some((address.is_ipv4(), bits.checked_shr(host).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_with_or_without_their_prefix() {
        assert_eq!("10.77.0.1,10.77.0.2".parse(), Ok(TunAddresses::default()));
        let written: TunAddresses = "192.168.3.5/30, 192.168.3.6/30".parse().unwrap();
        assert_eq!((written.prefix(), written.to_string().as_str()), (30, "192.168.3.5/30,192.168.3.6/30"));
        let six: TunAddresses = "fd77::1,fd77::2".parse().unwrap();
        assert_eq!(six.to_string().parse(), Ok(six));
        assert_eq!(six.prefix(), 64);
        assert!("1.2.3.4/0,200.2.3.4/0".parse::<TunAddresses>().is_ok());
    }

    #[test]
    fn ends_that_would_not_find_each_other_are_refused_with_a_sentence() {
        let refused = |text: &str| text.parse::<TunAddresses>().unwrap_err();
        for text in ["", "10.77.0.1", "10.77.0.1,", "a,b", "10.77.0.1/24,10.77.0.2/24,10.77.0.3/24"] {
            let error = refused(text);
            assert!(matches!(error, AddressesError::NotTwo { .. } | AddressesError::Prefix { .. }), "{text}: {error}");
            assert!(error.to_string().contains("such as 10.77.0.1"), "{error}");
        }
        for text in ["10.77.0.1/24,10.77.0.2", "10.77.0.1/33,10.77.0.2/33", "fd77::1/129,fd77::2/129", "10.77.0.1/x,10.77.0.2/x"] {
            assert!(matches!(refused(text), AddressesError::Prefix { .. }), "{text}");
        }
        assert!(matches!(refused("10.77.0.1,10.77.0.1"), AddressesError::Same { .. }));
        assert!(matches!(refused("10.77.0.1,10.77.1.2"), AddressesError::Apart { prefix: 24, .. }));
        assert!(matches!(refused("10.77.0.1,fd77::1"), AddressesError::Apart { .. }));
        assert!(matches!(refused("0.0.0.0,0.0.0.1"), AddressesError::NoHost { .. }));
        assert!(matches!(
            TunAddresses::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 40),
            Err(AddressesError::Apart { .. })
        ));
    }
}
