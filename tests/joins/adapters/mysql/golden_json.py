"""Binary JSON as MySQL 9.7.4 wrote it, and the text that it showed for it."""

GOLDEN = (
    ("0400", "null"),
    ("050100", "1"),
    ("05ffff", "-1"),
    ("07ffff0000", "65535"),
    ("0700000100", "65536"),
    ("0a0000000001000000", "4294967296"),
    ("0affffffffffffffff", "18446744073709551615"),
    ("0b48afbc9af2d77a3e", "0.0000001"),
    ("0b9b2ba1869b84063d", "0.00000000000001"),
    ("0b1656e79eaf03d23c", "0.000000000000001"),
    ("0bbc89d897b2d29c3c", "1e-16"),
    ("0b20015b6e8705db3c", "0.0000000000000015"),
    ("0b40de77832112dc42", "123456789012345.0"),
    ("0b00eb2af2548b1143", "1.234567890123456e15"),
    ("0b00003426f56b0c43", "1e15"),
    ("0b0080e03779c34143", "1e16"),
    ("0b0000901ec4bcd642", "100000000000000.0"),
    ("0b92d54d06cff08044", "1e22"),
    ("0b000000000000f03f", "1.0"),
    ("0b0000000000000080", "-0.0"),
    ("0b9a9999999999b93f", "0.1"),
    ("0bffffffffffffef7f", "1.7976931348623157e308"),
    ("0b0100000000000000", "5e-324"),
    ("0b756b7e54346f9d41", "123456789.12345679"),
    ("0b3f8cb5781daf1544", "9.999999999999998e19"),
    ("0401", "true"),
    ("0200000400", "[]"),
    ("0000000400", "{}"),
    ("0f0c0840e20119761f9519", '"2015-01-15 23:24:25.123456"'),
    ("0f0a0800000000001e9519", '"2015-01-15"'),
    ("0f0b080000000591cbffff", '"-838:59:59.000000"'),
    ("0f0b08e05ef8feffffffff", '"-00:00:01.500000"'),
    ("0f0b080100009dc4000000", '"12:18:29.000001"'),
    (
        "02040038000f10000f1a000f24000f2e000c080000001c6077bb190a08000000000076bb190b0800"
        "00001c600100000c08000000000042a519",
        '["2026-11-27 22:00:28.000000", "2026-11-'
        '27", "22:00:28.000000", "2020-01-01 00:0'
        '0:00.000000"]',
    ),
    ("0ff60403028132", "1.50"),
    ("0ff60e1a061cc4653600c4653600fffffe", "-99999999999999999999.000001"),
    ("0f0f0200ff", '"base64:type15:AP8="'),
    (
        "0f0f39ababababababababababababababababababababababababababababababababababababab"
        "abababababababababababababababababababab",
        '"base64:type15:q6urq6urq6urq6urq6urq6urq'
        "6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq"
        '6urq6urq6ur"',
    ),
    (
        "0002003a0012000100130005000218000c2e0061c3a95c6e22040016000501000f10000400000401"
        "00f604020182050b780975303030312f783766",
        '{"a": [1, 2.5, null, true], "é\\\\n\\"": "x\\tu0001/x7f"}',
    ),
    (
        "000100a4000b000100000c006b03009800190003001c00040020000b00002b000c7800027e006372"
        "7374797065636f6f7264696e6174657302004d001200040016000a000c2000002500747970657072"
        "6f70657274696573046e616d65010028000b0004000c0f006e616d651875726e3a6f67633a646566"
        "3a6372733a4d7953514c3a3a3005506f696e7402001a000b0a000b1200000000000000f03f000000"
        "0000000040",
        '{"k": {"crs": {"type": "name", "properti'
        'es": {"name": "urn:ogc:def:crs:MySQL::0"'
        '}}, "type": "Point", "coordinates": [1.0'
        ", 2.0]}}",
    ),
    (
        "0f0f72ababababababababababababababababababababababababababababababababababababab"
        "abababababababababababababababababababababababababababababababababababababababab"
        "ababababababababababababababababababababababababababababababababababababab",
        '"base64:type15:q6urq6urq6urq6urq6urq6urq'
        "6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq"
        "6urq6urq6ur\\nq6urq6urq6urq6urq6urq6urq6u"
        "rq6urq6urq6urq6urq6urq6urq6urq6urq6urq6u"
        'rq6urq6ur"',
    ),
    (
        "0f0f8201abababababababababababababababababababababababababababababababababababab"
        "abababababababababababababababababababababababababababababababababababababababab"
        "abababababababababababababababababababababababababababababababababababababababab"
        "abababababababababababababab",
        '"base64:type15:q6urq6urq6urq6urq6urq6urq'
        "6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq"
        "6urq6urq6ur\\nq6urq6urq6urq6urq6urq6urq6u"
        "rq6urq6urq6urq6urq6urq6urq6urq6urq6urq6u"
        'rq6urq6ur\\nq6urq6urq6urq6urq6urqw=="',
    ),
    (
        "0f0f3aababababababababababababababababababababababababababababababababababababab"
        "ababababababababababababababababababababab",
        '"base64:type15:q6urq6urq6urq6urq6urq6urq'
        "6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq"
        '6urq6urq6ur\\nqw=="',
    ),
    ("0c0ae280a8f09f98807f080c", '"\u2028😀\x7f\\b\\f"'),
)
