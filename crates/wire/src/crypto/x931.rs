//! X9.31 blocks: the padding, and the choice between a number and its complement that goes with it.
//!
//! Everything here is public (a token, a signature), so plain arithmetic on bytes will do.

use std::cmp::Ordering;

/// The padded block of `size` bytes for `message`, or `None` if it does not fit.
pub(super) fn pad(message: &[u8], size: usize) -> Option<Vec<u8>> {
    let fill = size.checked_sub(message.len() + 2)?;
    let mut block = Vec::with_capacity(size);
    match fill {
        0 => block.push(0x6a),
        _ => {
            block.push(0x6b);
            block.resize(fill, 0xbb);
            block.push(0xba);
        }
    }
    block.extend_from_slice(message);
    block.push(0xcc);
    Some(block)
}

/// The message in a padded block.
pub(super) fn unpad(block: &[u8]) -> Option<&[u8]> {
    let inner = block.strip_suffix(&[0xcc])?;
    match inner.split_first()? {
        (0x6a, message) => Some(message),
        (0x6b, rest) => {
            let end = rest.iter().position(|b| *b != 0xbb)?;
            rest[end..].strip_prefix(&[0xba])
        }
        _ => None,
    }
}

/// `modulus - number`; both big-endian, equally long, `number` not the greater one.
pub(super) fn complement(modulus: &[u8], number: &[u8]) -> Vec<u8> {
    let mut borrow = false;
    let mut out: Vec<u8> = modulus
        .iter()
        .zip(number)
        .rev()
        .map(|(m, n)| {
            let (rest, under) = m.overflowing_sub(*n);
            let (rest, under_too) = rest.overflowing_sub(borrow.into());
            borrow = under || under_too;
            rest
        })
        .collect();
    out.reverse();
    out
}

/// The smaller of a number and its complement: which of the two a signature is, is not left to chance.
pub(super) fn smaller(modulus: &[u8], number: Vec<u8>) -> Vec<u8> {
    let other = complement(modulus, &number);
    // Equal lengths: the order of the bytes is the order of the numbers.
    if other.cmp(&number) == Ordering::Less { other } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_length_are_read_back() {
        for len in 0..=30 {
            let message = vec![0xbb; len];
            let block = pad(&message, 32).unwrap();
            assert_eq!(block.len(), 32);
            assert_eq!(unpad(&block), Some(&message[..]));
        }
        assert_eq!(pad(&[0; 31], 32), None);
    }

    #[test]
    fn the_token_block_is_salts() {
        let block = pad(b"salt", 256).unwrap();
        assert_eq!(block[0], 0x6b);
        assert!(block[1..250].iter().all(|b| *b == 0xbb));
        assert_eq!(block[250..], [0xba, b's', b'a', b'l', b't', 0xcc]);
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for bad in
            [&[][..], &[0xcc], &[0x6b, 0xcc], &[0x6b, 0xbb, 0xcc], &[0x6b, 0xbb, 1, 0xcc], &[0x6a, 1], &[0x6c, 1, 0xcc]]
        {
            assert_eq!(unpad(bad), None, "{bad:x?}");
        }
    }

    #[test]
    fn complement_borrows() {
        assert_eq!(complement(&[1, 0, 0], &[0, 0, 1]), [0, 0xff, 0xff]);
        assert_eq!(smaller(&[1, 0, 1], vec![0, 0xff, 0xff]), [0, 0, 2]);
        assert_eq!(smaller(&[1, 0, 1], vec![0, 0, 2]), [0, 0, 2]);
    }
}
