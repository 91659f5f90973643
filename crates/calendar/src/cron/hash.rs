//! The number that `H` stands for: the same for ever for one definition, and spread evenly over many.

use super::bad::Field;

/// A number for a field of the definition that the seed names.
///
/// Written out here and never to be changed: with another function, or the standard library's, which promises nothing between
/// releases, every schedule with an `H` would move. The fields get numbers of their own, else `H H * * *` would only know
/// pairs like 05:05.
pub(super) fn of(seed: &str, field: Field) -> u64 {
    // FNV-1a, 64 bits.
    let bytes = field.to_string().into_bytes().into_iter().chain([0]).chain(seed.bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    // The finisher of SplitMix64: seeds that differ in the last letter only come out far apart.
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_spread_evenly() {
        let mut seen = [0_u32; 60];
        for n in 0..6_000 {
            seen[usize::try_from(of(&format!("nightly-{n}"), Field::Minute) % 60).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (60..=140).contains(count)), "{seen:?}");
    }
}
