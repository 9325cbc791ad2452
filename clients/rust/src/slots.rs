//! Slots of a cluster.

pub(crate) const SLOTS: u64 = 16_384;

/// By what stands in the first braces, if anything does, or by the whole key.
pub(crate) fn slot_of(key: &[u8]) -> u64 {
    u64::from(crc16(tag_of(key).unwrap_or(key))) % SLOTS
}

fn tag_of(key: &[u8]) -> Option<&[u8]> {
    let opened = key.iter().position(|&byte| byte == b'{')?;
    let rest = key.get(opened + 1..)?;
    let closed = rest.iter().position(|&byte| byte == b'}')?;
    rest.get(..closed).filter(|tag| !tag.is_empty())
}

/// CRC-16/XMODEM: polynomial 0x1021.
fn crc16(data: &[u8]) -> u16 {
    data.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_ne!(slot_of(b"foo{}{bar}"), slot_of(b"bar"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    }
}
