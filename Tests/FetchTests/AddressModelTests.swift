import SystemIO
import TestSupport
import Testing

@testable import Fetch

@Suite("Addresses and hosts are judged as simple models judge them") struct AddressModelTests {
    /// An address as 128 bits, and the number of bits of its family.
    private struct Bits: Equatable {
        let value: UInt128
        let width: Int

        init(_ address: IPAddress) {
            switch address {
            case .v4(let number): (value, width) = (UInt128(number), 32)
            case .v6(let high, let low): (value, width) = (UInt128(high) << 64 | UInt128(low), 128)
            }
        }
    }

    /// Whether a row such as `10.0.0.0/8` covers an address, compared as numbers.
    private func covers(_ row: String, _ address: IPAddress) throws -> Bool {
        let parts = row.split(separator: "/")
        let base = Bits(try #require(IPAddress(String(parts[0]))))
        let bits = Bits(address)
        guard base.width == bits.width else { return false }
        let length = try parts.count == 2 ? #require(Int(parts[1])) : base.width
        return (base.value ^ bits.value) >> (base.width - length) == 0
    }

    /// Random addresses, most of them in or next to a row of the table.
    private func address(_ random: inout SeededNumbers) throws -> IPAddress {
        if random.next() % 4 == 0 {
            return random.next() % 2 == 0
                ? .v4(UInt32(truncatingIfNeeded: random.next())) : .v6(high: random.next(), low: random.next())
        }
        let rows = SpecialPurposeAddresses.rows
        let row = rows[Int(random.next() % UInt64(rows.count))].0
        // One flipped bit leaves a block, enters another one, or stays inside.
        switch try #require(IPAddress(String(row.split(separator: "/")[0]))) {
        case .v4(let number): return .v4(number ^ 1 << UInt32(random.next() % 32))
        case .v6(let high, let low):
            let bit = random.next() % 128
            return bit < 64 ? .v6(high: high ^ 1 << bit, low: low) : .v6(high: high, low: low ^ 1 << (bit - 64))
        }
    }

    @Test(arguments: 1...4) func addressIsSpecialIfARowCoversIt(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        for _ in 0..<80 {
            let address = try address(&random)
            let isCovered = try SpecialPurposeAddresses.rows.contains { try covers($0.0, address) }
            if isCovered { #expect(SpecialPurposeAddresses.purpose(of: address) != nil, "\(address)") }
            guard !isCovered else { continue }
            let bits = Bits(address)
            let isGlobalUnicast = bits.width == 32 || bits.value >> 125 == 1
            let isTunnel = bits.width == 128 && bits.value >> 32 & 0xfdff_ffff == 0x5efe
            #expect((SpecialPurposeAddresses.purpose(of: address) == nil) == (isGlobalUnicast && !isTunnel), "\(address)")
        }
    }

    @Test func exceptionForARangeAllowsExactlyItsAddresses() throws {
        var random = SeededNumbers(seed: 3)
        let url = try WebAddress("http://example.com/")
        for row in ["10.0.0.0/8", "172.16.0.0/12", "127.0.0.1", "fc00::/7", "::1", "fe80::/10"] {
            let policy = AddressPolicy(ports: [80], exceptions: [try #require(AddressException(row))])
            for _ in 0..<80 {
                let address = try address(&random)
                let isAllowed = try covers(row, address) || SpecialPurposeAddresses.purpose(of: address) == nil
                #expect((policy.refusal(of: address, port: 80, for: url) == nil) == isAllowed, "\(row) \(address)")
            }
        }
    }

    /// Whether a pattern with stars matches a label, by trying every length for a star.
    private func matches(_ pattern: ArraySlice<Character>, _ label: ArraySlice<Character>) -> Bool {
        guard let first = pattern.first else { return label.isEmpty }
        if first == "*" {
            return (0...label.count).contains { matches(pattern.dropFirst(), label.dropFirst($0)) }
        }
        return label.first == first && matches(pattern.dropFirst(), label.dropFirst())
    }

    @Test func hostPatternMatchesAsAModelThatTriesEveryLength() throws {
        var random = SeededNumbers(seed: 12)
        func text(_ alphabet: [Character], _ bound: UInt64) -> [Character] {
            (0...(random.next() % bound)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
        }
        var matched = 0
        for _ in 0..<800 {
            let pattern = text(["a", "b", "*"], 4)
            let label = text(["a", "b"], 6)
            // At the start and followed by a dot, a star matches several labels.
            guard let glob = HostGlob("x." + String(pattern) + ".test"), let host = HostName("x." + String(label) + ".test")
            else {
                continue
            }
            let isMatch = matches(pattern[...], label[...])
            if isMatch { matched += 1 }
            #expect(glob.matches(host) == isMatch, "\(String(pattern)) \(String(label))")
        }
        #expect(matched > 40)
    }

    @Test(arguments: [
        ("*", "example.com", true), ("*", "1.2.3.4", true), ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false), ("1.2.3.4", "1.2.3.4", true),
        ("[::1]", "[::1]", true), ("EXAMPLE.com", "example.com", true), ("a.*.c", "a.b.b.c", false),
    ])
    func hostPatternMatchesHosts(pattern: String, host: String, isMatch: Bool) throws {
        let glob = try #require(HostGlob(pattern))
        #expect(try glob.matches(#require(HostName(host))) == isMatch)
    }

    @Test func patternThatBacktracksIsMatchedInReasonableTime() throws {
        let glob = try #require(HostGlob(String(repeating: "a*", count: 30) + "b.test"))
        let host = try #require(HostName(String(repeating: "a", count: 62) + ".test"))
        #expect(!glob.matches(host))
    }
}
