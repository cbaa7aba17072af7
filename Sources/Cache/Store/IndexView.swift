/// An index, and which of its rows may be answered with.
struct IndexView: Sendable {
    let index: Index
    /// Rows older than this may have been purged in a part of the journal that the index has not followed yet.
    let visibleFrom: Int64

    func alias(_ key: AliasKey) throws(IndexError) -> AliasRow? {
        guard let row = try index.alias(key), row.sequence >= visibleFrom else { return nil }
        return row
    }

    func object(_ id: ObjectID) throws(IndexError) -> ObjectRow? {
        guard let row = try index.object(id), row.sequence >= visibleFrom else { return nil }
        return row
    }
}
