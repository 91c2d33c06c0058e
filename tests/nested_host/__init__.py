# SPDX-License-Identifier: GPL-2.0-or-later
"""A host for the real testbed, emulated: KVM, an IOMMU and a NIC with virtual functions, all in software."""
