//! One of n equal parts of a sweep, for another process or another machine.
//!
//! Called by [`crate::study`] and by the command line. What is run is dealt out like cards: the first experiment to the first shard, the
//! second to the second. Each shard keeps what it has run in a store; a merge puts the stores together ([`crate::store::Store::take_from`]).
//!
//! Invariant: every experiment belongs to exactly one shard, and to the same one in every process that knows the same experiments. Equal
//! experiments belong to one shard.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// One part of so many; both count from 1, as test runners count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why a text is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no shard; write which of how many, such as 1/4 for the first of four")]
pub struct ShardError(String);

impl Shard {
    /// The whole.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Whether it is not the whole.
    pub const fn is_part(self) -> bool {
        self.count > 1
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let read = |(index, count): (&str, &str)| Some(Self { index: index.trim().parse().ok()?, count: count.trim().parse().ok()? });
        let shard = text.split_once('/').and_then(read).filter(|shard| (1..=shard.count).contains(&shard.index));
        shard.ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// Deals experiments out, in the order in which they are first seen.
#[derive(Debug)]
pub struct Dealer {
    shard: Shard,
    seen: BTreeMap<String, bool>,
}

impl Dealer {
    /// A dealer that tells what is of `shard`.
    pub const fn new(shard: Shard) -> Self {
        Self { shard, seen: BTreeMap::new() }
    }

    /// Whether the experiment with this canonical text is of the shard.
    pub fn is_ours(&mut self, canonical: String) -> bool {
        let turn = self.seen.len() as u64 % u64::from(self.shard.count.max(1)) + 1;
        let ours = turn == u64::from(self.shard.index);
        *self.seen.entry(canonical).or_insert(ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(text: &str) -> Shard {
        text.parse().unwrap()
    }

    #[test]
    fn a_shard_is_read_as_it_is_written_and_nothing_else() {
        for text in ["1/1", "3/4", "7/7"] {
            assert_eq!(shard(text).to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "0/0", "-1/4", "a/b", "1/4/2", "1/99999999999"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_experiment_is_of_one_shard_and_equal_ones_are_of_the_same() {
        let experiments = ["a", "b", "a", "c", "d", "b", "e", "f", "g"];
        for count in 1..=9 {
            let mut dealers: Vec<Dealer> = (1..=count).map(|index| Dealer::new(Shard { index, count })).collect();
            for experiment in experiments {
                assert_eq!(dealers.iter_mut().filter_map(|dealer| dealer.is_ours(experiment.to_owned()).then_some(())).count(), 1);
            }
            let sizes = dealers.iter().map(|dealer| dealer.seen.values().filter(|ours| **ours).count());
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(most - least <= 1, "{count} shards have {least} to {most} experiments");
            let mut again = Dealer::new(Shard { index: 1, count });
            assert_eq!(again.is_ours("a".to_owned()), dealers[0].is_ours("a".to_owned()));
        }
    }
}
