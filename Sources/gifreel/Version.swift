/// The product.
package enum Gifreel {
    package static let version = "0.1.0"
}
