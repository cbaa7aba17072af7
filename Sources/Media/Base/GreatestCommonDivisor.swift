/// The greatest common divisor of two numbers that are not negative, by Euclid's algorithm; the other number if one is 0.
func greatestCommonDivisor(_ first: Int, _ second: Int) -> Int {
    second == 0 ? first : greatestCommonDivisor(second, first % second)
}
