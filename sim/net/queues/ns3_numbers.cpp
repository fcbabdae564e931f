#include "sim/net/queues/ns3_numbers.hpp"

namespace quicgym::net {

namespace {

using Wide = unsigned __int128;
using Vector = std::array<std::uint64_t, 3>;
using Matrix = std::array<Vector, 3>;

constexpr std::uint64_t kModulus1 = 4294967087;
constexpr std::uint64_t kModulus2 = 4294944443;
constexpr std::uint64_t kA12 = 1403580, kA13Negated = 810728;
constexpr std::uint64_t kA21 = 527612, kA23Negated = 1370589;

// From the state at one number to the state at the next.
constexpr Matrix kStep1 = {{{0, 1, 0}, {0, 0, 1}, {kModulus1 - kA13Negated, kA12, 0}}};
constexpr Matrix kStep2 = {{{0, 1, 0}, {0, 0, 1}, {kModulus2 - kA23Negated, 0, kA21}}};

constexpr int kStreamBits = 127;
constexpr int kSubstreamBits = 76;
constexpr std::uint64_t kAssignedStreams = std::uint64_t{1} << 63;  // ns-3 numbers its own ones below

Vector product(const Matrix& matrix, const Vector& vector, std::uint64_t modulus) {
    Vector result{};
    for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t i = 0; i < 3; ++i)
            result[row] = (result[row] + matrix[row][i] * vector[i] % modulus) % modulus;
    }
    return result;
}

Matrix squared(const Matrix& matrix, std::uint64_t modulus) {
    Matrix result{};
    for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
            for (std::size_t i = 0; i < 3; ++i) {
                result[row][column] =
                    (result[row][column] + matrix[row][i] * matrix[i][column] % modulus) % modulus;
            }
        }
    }
    return result;
}

// The state `count` times 2^bits numbers on.
Vector advanced(Vector state, Matrix step, std::uint64_t modulus, std::uint64_t count, int bits) {
    for (int i = 0; i < bits; ++i) step = squared(step, modulus);
    for (; count > 0; count >>= 1) {
        if (count & 1) state = product(step, state, modulus);
        step = squared(step, modulus);
    }
    return state;
}

}  // namespace

double ns3_seconds(Time time) {
    constexpr Wide kInverse = ~Wide{0} / 1'000'000'000U + 1;  // of 10^9, times 2^128
    const auto nanoseconds = static_cast<std::uint64_t>(time);
    const Wide seconds = nanoseconds * (kInverse >> 64) + ((nanoseconds * (kInverse & UINT64_MAX)) >> 64);
    return static_cast<double>(static_cast<long double>(seconds) * 0x1p-64L);
}

Ns3Random::Ns3Random(std::uint64_t seed, std::uint64_t stream) {
    const auto begin = [&](const Matrix& step, std::uint64_t modulus) {
        const Vector state = advanced({1, 1, 1}, step, modulus, kAssignedStreams + stream, kStreamBits);
        return advanced(state, step, modulus, seed, kSubstreamBits);
    };
    first_ = begin(kStep1, kModulus1);
    second_ = begin(kStep2, kModulus2);
}

double Ns3Random::uniform() {
    const std::uint64_t p1 =
        (kA12 * first_[1] + (kModulus1 - kA13Negated) * first_[0] % kModulus1) % kModulus1;
    first_ = {first_[1], first_[2], p1};
    const std::uint64_t p2 =
        (kA21 * second_[2] + (kModulus2 - kA23Negated) * second_[0] % kModulus2) % kModulus2;
    second_ = {second_[1], second_[2], p2};
    constexpr double kNorm = 1.0 / (static_cast<double>(kModulus1) + 1.0);
    const std::uint64_t difference = p1 > p2 ? p1 - p2 : p1 + kModulus1 - p2;
    return static_cast<double>(difference) * kNorm;
}

}  // namespace quicgym::net
