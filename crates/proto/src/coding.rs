//! The erasure code: repair units out of the bytes of a segment, and the bytes of missing units out of repair units.
//!
//! Called by the packet store ([`crate::store`]), which has the bytes; which units are protected, how many repair units leave and when a
//! segment is restored is decided by the halves. The code is Reed-Solomon over GF(2^16) (`reed-solomon-simd`): any n repair units restore
//! any n protected units. A code is fixed by how many units it protects, by the size of a unit and by nothing else, so both ends
//! make the same one.
//!
//! Invariant: a segment is encoded at most once, with all its repair units, which are kept until it is judged, or it has fewer than eight
//! protected units and is encoded for each shipment of them; it is decoded at most once,
//! when that must succeed. So neither end works more than in proportion to what it has sent or received.

use crate::layout::Layout;
use core::sync::atomic::{AtomicBool, Ordering};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use segstream_base::UnitIndex;
use segstream_blocks::fence::Fence;
use segstream_wire::repair::{repair_unit_bytes, repair_units_max};

/// Builds the tables of the field, of which the code needs one set in a process. Whoever codes first builds them otherwise, and whoever
/// codes meanwhile waits: that takes tens of milliseconds, longer than many a segment may. So it is done beforehand, where nothing waits.
pub fn build_tables() {
    let contract = segstream_wire::Contract { unit_bytes: 64, ..Default::default() };
    let layout = Layout::new(&contract, contract.tolerance, false, Some(640));
    let mut bytes = [7; 640];
    // Why restored as well: decoding has tables of its own.
    if let Some(repairs) = RepairUnits::encode(&layout, Fence::ALL, &bytes) {
        let held = [(0, repairs.run(0, 1).into())];
        Restorable { layout: &layout, fence: Fence::ALL, missing: &[UnitIndex::FIRST], repairs: &held }.restore(&mut bytes);
    }
    TABLES_BUILT.store(true, Ordering::Release);
}

/// Whether [`build_tables`] has been called and has returned.
pub fn are_tables_built() -> bool {
    TABLES_BUILT.load(Ordering::Acquire)
}

static TABLES_BUILT: AtomicBool = AtomicBool::new(false);

/// Repair units of a segment that have arrived, by their numbers.
pub(crate) type HeldRepairs = Vec<(u32, Box<[u8]>)>;

/// All repair units of one segment.
#[derive(Debug)]
pub(crate) struct RepairUnits {
    bytes: Vec<u8>,
    unit_bytes: usize,
}

impl RepairUnits {
    /// Those over the `fence` of a segment with these bytes; `None` if it has no protected unit, or bytes are missing.
    pub(crate) fn encode(layout: &Layout, fence: Fence, bytes: &[u8]) -> Option<Self> {
        let units = layout.units?;
        let (protected, unit_bytes) = (fence.count(units), repair_unit_bytes(layout.unit_bytes) as usize);
        let count = repair_units_max(protected);
        let mut encoder = ReedSolomonEncoder::new(protected as usize, count as usize, unit_bytes).ok()?;
        let mut shard = vec![0; unit_bytes];
        for unit in fence.units(units) {
            copy_unit(bytes.get(range_of(layout, unit))?, &mut shard);
            encoder.add_original_shard(&shard).ok()?;
        }
        let encoded = encoder.encode().ok()?;
        let mut all = Vec::with_capacity(count as usize * unit_bytes);
        encoded.recovery_iter().for_each(|unit| all.extend_from_slice(unit));
        Some(Self { bytes: all, unit_bytes })
    }

    /// The bytes of those from `first` on.
    pub(crate) fn run(&self, first: u32, count: u32) -> &[u8] {
        let start = first as usize * self.unit_bytes;
        self.bytes.get(start..start + count as usize * self.unit_bytes).unwrap_or_default()
    }

    /// The memory that they take, in bytes.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}

/// A segment that can be restored: its protected units, those of them that are missing, and repair units in place of them.
#[derive(Debug)]
pub(crate) struct Restorable<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) fence: Fence,
    /// Protected units that are missing, in ascending order.
    pub(crate) missing: &'a [UnitIndex],
    /// Repair units by their number, at least as many as are missing.
    pub(crate) repairs: &'a [(u32, Box<[u8]>)],
}

impl Restorable<'_> {
    /// Puts the missing units into the `bytes` of the segment. `None` if they cannot be restored; then nothing has changed.
    pub(crate) fn restore(&self, bytes: &mut [u8]) -> Option<()> {
        let units = self.layout.units?;
        let (protected, unit_bytes) = (self.fence.count(units), repair_unit_bytes(self.layout.unit_bytes) as usize);
        let mut decoder = ReedSolomonDecoder::new(protected as usize, repair_units_max(protected) as usize, unit_bytes).ok()?;
        let mut shard = vec![0; unit_bytes];
        let mut absent = self.missing.iter().copied().peekable();
        let mut places = Vec::with_capacity(self.missing.len());
        for (place, unit) in self.fence.units(units).enumerate() {
            if absent.next_if_eq(&unit).is_some() {
                places.push((place, unit));
                continue;
            }
            copy_unit(bytes.get(range_of(self.layout, unit))?, &mut shard);
            decoder.add_original_shard(place, &shard).ok()?;
        }
        for (number, repair) in self.repairs {
            decoder.add_recovery_shard(*number as usize, repair).ok()?;
        }
        let decoded = decoder.decode().ok()?;
        if places.iter().any(|(place, _)| decoded.restored_original(*place).is_none()) {
            return None;
        }
        for (place, unit) in places {
            let (range, restored) = (range_of(self.layout, unit), decoded.restored_original(place)?);
            if let (Some(room), Some(restored)) = (bytes.get_mut(range.clone()), restored.get(..range.len())) {
                room.copy_from_slice(restored);
            }
        }
        Some(())
    }
}

/// Where the bytes of a unit lie in those of its segment.
fn range_of(layout: &Layout, unit: UnitIndex) -> core::ops::Range<usize> {
    let start = unit.0 as usize * layout.unit_bytes as usize;
    start..start + layout.bytes_of(unit) as usize
}

/// Copies a unit, with zeros behind it: units of an odd size and the last of a segment are shorter than a repair unit.
fn copy_unit(unit: &[u8], shard: &mut [u8]) {
    let (bytes, padding) = shard.split_at_mut(unit.len());
    bytes.copy_from_slice(unit);
    padding.fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use segstream_wire::Contract;

    fn layout(unit_bytes: u32, length: u64) -> Layout {
        let contract = Contract { unit_bytes, ..Contract::default() };
        Layout::new(&contract, contract.tolerance, false, Some(length))
    }

    proptest! {
        /// Units of any size, a short last one, any fence, any units missing, any repair units in place of them.
        #[test]
        fn any_repair_units_restore_as_many_protected_units(unit_bytes in 1u32..40, length in 1u64..3000, important in 0u32..9, every in 0u32..6, seed: u64) {
            let layout = layout(unit_bytes, length);
            let units = layout.units.unwrap();
            let fence = Fence { important: important.min(units), every };
            let protected = fence.count(units);
            prop_assume!(protected > 0 && protected <= segstream_wire::repair::PROTECTED_MAX);
            let source: Vec<u8> = (0..length).map(|at| (at.wrapping_mul(seed | 1) >> 3) as u8).collect();
            let repairs = RepairUnits::encode(&layout, fence, &source).unwrap();
            let missing: Vec<UnitIndex> = fence.units(units).enumerate().filter(|(at, _)| seed >> (at % 60) & 1 == 1).map(|(_, unit)| unit).take(repair_units_max(protected) as usize).collect();
            let mut bytes = source.clone();
            for &unit in &missing {
                bytes[range_of(&layout, unit)].fill(0xee);
            }
            // The last ones, in descending order.
            let first = repair_units_max(protected) - missing.len() as u32;
            let held: Vec<(u32, Box<[u8]>)> = (first..repair_units_max(protected)).rev().map(|at| (at, repairs.run(at, 1).into())).collect();
            let restorable = Restorable { layout: &layout, fence, missing: &missing, repairs: &held };
            prop_assert!(missing.is_empty() || restorable.restore(&mut bytes).is_some());
            prop_assert!(bytes == source);
            if missing.len() > 1 {
                let fewer = Restorable { repairs: &held[1..], ..restorable };
                prop_assert!(fewer.restore(&mut bytes).is_none(), "one repair unit too few");
            }
        }
    }

    /// Prints what the first segments of a process cost, coded and restored: after the tables are built if `TABLES` is set.
    #[test]
    #[ignore = "a measurement"]
    fn first_use() {
        if std::env::var_os("TABLES").is_some() {
            build_tables();
        }
        let layout = layout(1024, 256 << 10);
        let mut bytes = vec![7; 256 << 10];
        let missing = [UnitIndex(3), UnitIndex(200)];
        for segment in 0..3 {
            let begun = std::time::Instant::now();
            let repairs = RepairUnits::encode(&layout, Fence::ALL, &bytes).unwrap();
            let coded = begun.elapsed();
            let held: Vec<(u32, Box<[u8]>)> = (0..2).map(|at| (at, repairs.run(at, 1).into())).collect();
            Restorable { layout: &layout, fence: Fence::ALL, missing: &missing, repairs: &held }.restore(&mut bytes).unwrap();
            eprintln!("segment {segment}: coded in {coded:.1?}, restored in {:.1?}", begun.elapsed() - coded);
        }
    }

    #[test]
    fn a_repair_unit_of_another_size_restores_nothing() {
        let layout = layout(10, 100);
        let missing = [UnitIndex(3)];
        let short: Vec<(u32, Box<[u8]>)> = vec![(0, vec![0; 8].into())];
        let beyond: Vec<(u32, Box<[u8]>)> = vec![(8, vec![0; 10].into())];
        for repairs in [&short, &beyond] {
            let restorable = Restorable { layout: &layout, fence: Fence::ALL, missing: &missing, repairs };
            assert!(restorable.restore(&mut [0; 100]).is_none());
        }
    }
}
