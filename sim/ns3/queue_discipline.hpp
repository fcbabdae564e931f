// A scenario's queue discipline by name, as one of ns-3's queue discs.
#pragma once

#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>
#include <ns3/queue-disc.h>
#include <ns3/queue-size.h>

#include <cstdint>
#include <string>

#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// Throws std::invalid_argument where ns-3 would end the process; `where` names the link.
void check_queue_discipline(const Link& link, const std::string& where);

ns3::QueueSize queue_size(const Link& link);

// Puts the link's disc in front of the device, which has a NetDeviceQueueInterface; null for drop-tail.
ns3::Ptr<ns3::QueueDisc> install_queue_disc(const ns3::Ptr<ns3::PointToPointNetDevice>& device,
                                            const Link& link, const Scenario& scenario,
                                            std::uint64_t random_stream);

}  // namespace quicgym::ns3_host
