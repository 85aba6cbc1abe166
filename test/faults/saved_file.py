"""The file of saved statistics, damaged in ways that its checksum shows, or does not.

The format is that of src/store/persist.c: a header, sections of entries, and a CRC-32C.
"""

import struct

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def checksum(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def with_checksum(content):
    """The same with a checksum that is right."""
    return content[:-4] + checksum(content[:-4])


EXTREMES = [0, 1, -1, 2**31, 2**53, 2**62, 2**63 - 1, -2**63, 0x7FF0000000000000, 0x7FF8000000000000,
            0x7FEFFFFFFFFFFFFF]


def damaged(content, source, checked):
    """Change some bytes, or numbers, anywhere after the first words of the header.

    "source" is a random.Random; with "checked" the checksum is right again.
    """
    result = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 5, 40))):
        kind = source.randrange(4)
        # the first words say what file it is: with a right checksum, more is read behind them
        at = source.randrange(0 if not checked else 48, len(result) - 4)
        if kind == 0:
            result[at] ^= source.randrange(1, 256)
        elif kind == 1:
            result[at] = source.choice((0, 255))
        else:
            at = min(at & ~7, len(result) - 12)
            struct.pack_into("<q", result, at, source.choice(EXTREMES))
    result = bytes(result)
    if not checked and source.randrange(10) == 0:
        result = result[:source.randrange(len(result))]
    return with_checksum(result) if checked else result
