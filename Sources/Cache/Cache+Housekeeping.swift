/// What goes on in the background, on a thread of its own.
extension Cache {
    /// One round.
    func keepHouse() {
        store.catchUp()
        evict()
    }
}
